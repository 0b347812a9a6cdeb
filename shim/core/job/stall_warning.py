"""After how long a wait for missing ranks is told of."""

from __future__ import annotations

import math

from shim.core.job.variables import Variables
from shim.errors import ArgumentError

__all__ = ["chosen_stall_warning"]

_USUAL = "10"  # seconds


def chosen_stall_warning(variables: Variables) -> float:
    """Return the seconds that ``SHIM_STALL_WARNING`` gives, 10 where it is not set; 0 means never. Raises ArgumentError for what is no time."""
    text = variables.get("SHIM_STALL_WARNING") or _USUAL
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ArgumentError(f"SHIM_STALL_WARNING must be a number of seconds, 0 for no warning, got {text!r}")
    return seconds
