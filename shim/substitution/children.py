"""Has the processes that a substituted program starts with ``multiprocessing`` run it with views as well.

A process that is spawned imports its parent's program again, to find the functions that it is to call. What it is told before that is made
by ``multiprocessing.spawn.get_preparation_data``, which is replaced in the program's own process. A forked process has its views from its parent.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from shim.substitution.own_modules import own_folders, substitute_below

__all__ = ["substitute_in_children"]

_SPAWN = "multiprocessing.spawn"


def substitute_in_children() -> None:
    """From here on the processes that this one spawns run its program with views, and so do theirs.

    ``multiprocessing`` is left for the program to import: the first who does gives the program's module a second name, by which Python
    knows at its end when to free what the module holds.
    """
    if _SPAWN in sys.modules:
        _replace_in(sys.modules[_SPAWN])
    else:
        sys.meta_path.insert(0, _SpawnFinder())


class _SpawnFinder(importlib.abc.MetaPathFinder):
    """Sees ``multiprocessing.spawn`` being imported, once."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != _SPAWN:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader: Any = None if spec is None else spec.loader
        execute = loader.exec_module

        def execute_and_replace(module: ModuleType) -> None:
            execute(module)
            _replace_in(module)

        loader.exec_module = execute_and_replace
        return spec


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
