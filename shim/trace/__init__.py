"""Recordings of jobs: reads, compares, converts and replays what ``SHIM_TRACE`` has written. ``shim/cli/trace`` has the commands."""
