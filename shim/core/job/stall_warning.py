"""After how long a wait for missing ranks is told of."""

from __future__ import annotations

from shim.core.job.variables import Variables, checked_seconds

_USUAL = "10"  # seconds


def chosen_stall_warning(variables: Variables) -> float:
    """Return the seconds that ``SHIM_STALL_WARNING`` gives, 10 where it is not set; 0 means never. Raises ArgumentError for what is no time."""
    text = variables.get("SHIM_STALL_WARNING") or _USUAL
    return checked_seconds("SHIM_STALL_WARNING", text, "a number of seconds, 0 for no warning")
