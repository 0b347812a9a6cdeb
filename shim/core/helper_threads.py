"""How many threads the engine may begin to help with large operations."""

from __future__ import annotations

from shim.core.variables import Variables
from shim.errors import ArgumentError

__all__ = ["chosen_helper_threads"]

_MOST = 64


def chosen_helper_threads(variables: Variables) -> int:
    """Return the number that ``SHIM_HELPER_THREADS`` gives, 0 where it is not set. Raises ArgumentError for what is none, 0 to 64."""
    text = variables.get("SHIM_HELPER_THREADS") or "0"
    if not (text.isascii() and text.isdigit() and len(text) <= 2 and int(text) <= _MOST):
        raise ArgumentError(f"SHIM_HELPER_THREADS must be a whole number from 0 to {_MOST}, got {text!r}")
    return int(text)
