"""``%load_ext shim.notebook`` gives a Jupyter notebook, or IPython, the magic ``%%ranks 4``, which runs a cell on ranks."""

from __future__ import annotations

import atexit
import importlib.util
from typing import Any

from shim.errors import StateError


def load_ipython_extension(shell: Any) -> None:
    """Add ``%%ranks`` and ``%ranks`` to *shell*; IPython calls this for ``%load_ext shim.notebook``.

    Raises ImportError where IPython is not installed, StateError where no shell of IPython runs.
    """
    if importlib.util.find_spec("IPython") is None:
        raise ImportError(
            "shim.notebook needs IPython, which is not installed: python3 -m pip install 'shim-collectives[notebook]'"
        )
    if not hasattr(shell, "register_magic_function"):
        raise StateError("shim.notebook works in IPython and Jupyter alone: load it there with %load_ext shim.notebook")
    from shim.notebook.magic import Ranks  # here, as ranks import this package too, and need no IPython

    shell.register_magic_function(Ranks(shell).ranks, "line_cell", "ranks")


def unload_ipython_extension(shell: Any) -> None:
    """End the ranks and take the magics from *shell*; IPython calls this for ``%unload_ext`` and ``%reload_ext``."""
    for magics in shell.magics_manager.magics.values():
        magic = magics.pop("ranks", None)
        if magic is not None:
            magic.__self__.stop()
            atexit.unregister(magic.__self__.stop)
