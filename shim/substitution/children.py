"""Has the processes that a substituted program starts with ``multiprocessing`` run it with views as well.

A process that is spawned imports its parent's program again, to find the functions that it is to call. What it is told before that is made
by ``multiprocessing.spawn.get_preparation_data``, which is replaced in the program's own process. A forked process has its views from its parent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shim.substitution.after_import import after_import
from shim.substitution.own_modules import own_folders, substitute_below

__all__ = ["substitute_in_children"]


def substitute_in_children() -> None:
    """From here on the processes that this one spawns run its program with views, and so do theirs.

    ``multiprocessing`` is left for the program to import: the first who does gives the program's module a second name, by which Python
    knows at its end when to free what the module holds.
    """
    after_import("multiprocessing.spawn", _replace_in)


def _replace_in(spawn: Any) -> None:
    prepare = spawn.get_preparation_data

    def prepare_with_views(name: str) -> dict[str, Any]:
        return {"shim_views": _Views(), **prepare(name)}

    spawn.get_preparation_data = prepare_with_views


class _Views:
    """Comes to a spawned process by pickle, before the program does, and has its modules get views there."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _begin, own_folders()


def _begin(*folders: str) -> None:
    for folder in folders:
        substitute_below(Path(folder))
    substitute_in_children()
