"""What the user's environment chooses of the shared-memory engine."""

from __future__ import annotations

import os

from shim.core.job.variables import Variables, checked_bytes

__all__ = ["NEVER", "chosen_cross_memory", "measurements_folder"]

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


def measurements_folder(variables: Variables) -> str | None:
    """Return the folder that the user's environment chooses: "" where there is none, None where nothing is to be measured.

    ``SHIM_MEASURED`` says it, as a path or as ``off``. Without it, it is where caches of a user are, as the XDG base
    directory specification has it.
    """
    chosen = variables.get("SHIM_MEASURED")
    if chosen == "off":
        return None
    folder = chosen or _usual_folder(variables)
    try:
        folder.encode()
    except UnicodeEncodeError:  # the engine takes text; no figure is worth an error
        return ""
    return folder


def _usual_folder(variables: Variables) -> str:
    cache, home = variables.get("XDG_CACHE_HOME"), variables.get("HOME")
    if cache is not None and os.path.isabs(cache):  # the specification has a relative one ignored
        return os.path.join(cache, "shim")
    return os.path.join(home, ".cache", "shim") if home is not None else ""
