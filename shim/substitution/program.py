"""Substitution for a program: a script or module, and the modules of its own that it imports."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import os
import site
import sys
import sysconfig
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from shim.substitution.children import Program, substitute_in_children
from shim.substitution.imports import scoped_builtins
from shim.substitution.mirrors import FRAMEWORKS

__all__ = ["run_again", "run_module", "run_script", "substitute_below"]


class _Loader(SourceFileLoader):
    """Loads a module of the program, whose imports get views as well."""

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = scoped_builtins()
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules below its *folders*, as far as they are the program's own."""

    def __init__(self) -> None:
        self.folders: list[Path] = []

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name.partition(".")[0] in FRAMEWORKS or (path is not None and not any(map(self._is_own, path))):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None or type(spec.loader) is not SourceFileLoader:
            return None
        if not self._is_own(spec.origin):
            return None
        spec.loader = _Loader(name, spec.origin)
        return spec

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
    """From now on, give the imports of the modules below *folder* views; those that are loaded already stay as they are."""
    folder = folder.resolve()
    if folder not in _finder.folders:
        _finder.folders.append(folder)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def _substitute_around(folder: Path) -> None:
    """Substitute below *folder*, the working folder, and where PYTHONPATH leads to, unless packages are installed there."""
    searched = map(Path, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    for place in (folder, Path.cwd(), *(place for place in searched if not any(place.glob("*.dist-info")))):
        substitute_below(place)


def run_script(script: str, arguments: Sequence[str] = ()) -> None:
    """Run the file *script* as ``python script arguments`` does, with views for its imports and for its own modules'."""
    path = os.path.abspath(script)
    folder = os.path.dirname(
        os.path.realpath(path)
    )  # Python, too, finds what lies beside the file that a link leads to
    sys.argv[:] = [script, *arguments]
    _put_in_front(folder)
    _substitute_around(Path(folder))
    substitute_in_children(Program(path, None))
    _run_as_main(_code_of(path), path, None)


def run_module(name: str, arguments: Sequence[str] = ()) -> None:
    """Run the module *name* as ``python -m name arguments`` does, with views for its imports and its package's."""
    _put_in_front(os.getcwd())
    _substitute_around(Path.cwd())
    code, spec = _module_of(name)
    path = str(spec.origin)
    sys.argv[:] = [path, *arguments]
    substitute_in_children(Program(path, spec.name))
    _run_as_main(code, path, spec)


def _put_in_front(folder: str) -> None:
    # With a safe path, which is in Python 3.11 or later, there is no folder to replace, and Python would put none there.
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path[0:1] = [folder]


def run_again(program: Program, name: str) -> dict[str, Any]:
    """Run *program* in a process that it has spawned, as the module *name* with views, and return the names it has then.

    The search path is set already; where it has the working folder for a script's, that is the parent's.
    """
    _substitute_around(Path(program.path).resolve().parent if program.name is None else Path.cwd())
    substitute_in_children(program)
    code, spec = (_code_of(program.path), None) if program.name is None else _module_of(program.name)
    names = _names(name, program.path, spec)
    exec(code, names)
    return names


def _code_of(path: str) -> CodeType:
    return compile(SourceFileLoader("__main__", path).get_data(path), path, "exec", dont_inherit=True)


def _module_of(name: str) -> tuple[CodeType, ModuleSpec]:
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    if spec is None or not isinstance(spec.loader, SourceFileLoader) or spec.origin is None:
        raise ImportError(f"No module named {name!r} that has Python source")
    code = spec.loader.get_code(spec.name)
    assert code is not None
    return code, spec


def _names(name: str, path: str, spec: ModuleSpec | None) -> dict[str, Any]:
    package = spec.parent if spec is not None else None
    builtins = scoped_builtins()
    return {"__name__": name, "__file__": path, "__spec__": spec, "__package__": package, "__builtins__": builtins}


def _run_as_main(code: CodeType, path: str, spec: ModuleSpec | None) -> None:
    main = ModuleType("__main__")
    main.__dict__.update(_names("__main__", path, spec))
    sys.modules["__main__"] = main
    exec(code, main.__dict__)
