"""Where the engine keeps what it has measured of the machine."""

from __future__ import annotations

import os

from shim.core.variables import Variables

__all__ = ["measurements_folder"]


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
