"""Which modules are a program's own, and how they are loaded so that their imports get views."""

from __future__ import annotations

import functools
import importlib.abc
import os
import site
import sys
import sysconfig
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any
from zipimport import zipimporter

from shim.substitution.imports import scoped_builtins
from shim.substitution.mirrors import FRAMEWORKS

__all__ = ["substitute_below"]


class _FileLoader(SourceFileLoader):
    """Loads a module from a file of its own, with views for its imports."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _module_with_views(spec)


class _ZipLoader(zipimporter):
    """Loads a module from a zip file, with views for its imports."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # type: ignore[override]  # typeshed knows the default alone
        return _module_with_views(spec)


def _with_views(found: Any, name: str, origin: str) -> Any:
    """Return what loads as *found*, and gives views; None for any other loader."""
    if type(found) is SourceFileLoader:
        return _FileLoader(name, origin)
    if type(found) is zipimporter:
        return _ZipLoader(os.path.join(found.archive, found.prefix))
    return None


def _module_with_views(spec: ModuleSpec) -> ModuleType:
    """Make the module, and have Python's own loader run it, so that no traceback shows us."""
    module = ModuleType(spec.name)
    module.__dict__["__builtins__"] = scoped_builtins()
    return module


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules below its *folders*, as far as they are the program's own."""

    def __init__(self) -> None:
        self.folders: list[Path] = []

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name.partition(".")[0] in FRAMEWORKS or (path is not None and not any(map(self._is_own, path))):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None or not self._is_own(spec.origin):
            return None
        spec.loader = _with_views(spec.loader, name, spec.origin)
        return None if spec.loader is None else spec

    def _is_own(self, place: str) -> bool:
        found = Path(place).resolve()
        return any(map(found.is_relative_to, self.folders)) and not any(map(found.is_relative_to, _installed()))


@functools.cache
def _installed() -> tuple[Path, ...]:
    """Return the folders of packages that are not the program's own, though they may lie below its folder."""
    places = [*site.getsitepackages(), site.getusersitepackages(), *sysconfig.get_paths().values()]
    return (*(Path(place).resolve() for place in places if os.path.isabs(place)), Path(__file__).resolve().parents[1])


_finder = _Finder()


def substitute_below(folder: Path) -> None:
    """From now on, give the imports of the modules below *folder*, or in a zip file, views; those that are loaded already stay as they are."""
    folder = folder.resolve()
    if folder not in _finder.folders:
        _finder.folders.append(folder)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
