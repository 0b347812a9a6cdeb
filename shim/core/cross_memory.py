"""From which size on messages are copied straight between the memory of two processes."""

from __future__ import annotations

from shim.core.variables import Variables, checked_bytes

__all__ = ["NEVER", "chosen_cross_memory"]

NEVER = 1 << 48  # more bytes than a message can have


def chosen_cross_memory(variables: Variables) -> int:
    """Return the bytes that ``SHIM_CROSS_MEMORY`` gives, 0 where it is not set and the machine decides.

    Raises ArgumentError for what is neither ``off`` nor a number of bytes from 1 on.
    """
    text = variables.get("SHIM_CROSS_MEMORY")
    if not text:
        return 0
    if text == "off":
        return NEVER
    return checked_bytes("SHIM_CROSS_MEMORY", text, "off")
