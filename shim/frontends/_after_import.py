"""Doing something when a module has been imported, be it by now or later."""

from __future__ import annotations

import contextlib
import importlib.abc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def after_import(name: str, action: Callable[[ModuleType], None]) -> None:
    """Give the module *name* to *action*: now, if it has been imported, else when whoever imports it first has it."""
    if name in sys.modules:
        action(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, action))


class _Finder(importlib.abc.MetaPathFinder):
    """Sees the module being imported. To be looked for, as by ``importlib.util.find_spec``, is not to be imported."""

    def __init__(self, name: str, action: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._action = action

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        spec = self._spec_of_others(name, path, target)
        loader: Any = None if spec is None else spec.loader
        if loader is None:
            return spec
        execute = loader.exec_module

        def execute_and_act(module: ModuleType) -> None:
            execute(module)
            with contextlib.suppress(ValueError):  # it is imported again
                sys.meta_path.remove(self)
            self._action(module)

        loader.exec_module = execute_and_act
        return spec

    def _spec_of_others(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None
