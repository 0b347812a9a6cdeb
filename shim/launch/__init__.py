"""Processes that are ranks: how they are told who they are, started, watched and ended."""
