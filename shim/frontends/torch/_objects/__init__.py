"""Collectives of Python objects."""
