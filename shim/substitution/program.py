"""Substitution for a program: a script, folder, zip file or module, and the modules of its own that it imports."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn

from shim.substitution.children import Program, substitute_in_children
from shim.substitution.imports import scoped_builtins
from shim.substitution.own_modules import substitute_below

__all__ = ["run_again", "run_module", "run_script"]

_MAIN = "__main__"


def run_script(script: str, arguments: Sequence[str] = ()) -> None:
    """Run *script* as ``python script arguments`` does, with views for its imports and for its own modules'.

    It is a file of source, or a folder or zip file with a ``__main__``.
    """
    path = os.path.abspath(script)
    sys.argv[:] = [script, *arguments]
    finder = pkgutil.get_importer(path)  # there is one for what can stand in the search path; Python asks this too
    if finder is None:
        # Python, too, finds what lies beside the file that a link leads to.
        folder = os.path.dirname(os.path.realpath(path))
        _put_in_front(folder)
        _run(Program(path, None), _code_of(path), None, Path(folder))
    else:
        spec = finder.find_spec(_MAIN)
        if spec is None:
            _give_up(f"can't find {_MAIN!r} module in {path!r}")
        _put_in_front(path, even_safe=True)
        _run(Program(str(spec.origin), _MAIN), _loaded(spec), spec, Path(path))


def run_module(name: str, arguments: Sequence[str] = ()) -> None:
    """Run the module *name* as ``python -m name arguments`` does, with views for its imports and its package's."""
    _put_in_front(os.getcwd())
    _substitute_around(Path.cwd())  # the package is imported to find the module in it
    spec = _spec_of(name)
    path = str(spec.origin)
    sys.argv[:] = [path, *arguments]
    _run(Program(path, spec.name), _loaded(spec), spec, Path.cwd())


def run_again(program: Program, name: str) -> dict[str, Any]:
    """Run *program* in a process that it has spawned, as the module *name* with views, and return the names it has then.

    The search path is set already; where it has the working folder for a script's, that is the parent's. As in plain Python,
    what is called ``__main__`` is not run again: it does not ask whether it is the program.
    """
    is_file = program.name in (None, _MAIN)
    _substitute_around(Path(program.path).resolve().parent if is_file else Path.cwd())
    substitute_in_children(program)
    if program.name is None:
        code, spec = _code_of(program.path), None
    elif program.name.rpartition(".")[2] == _MAIN:
        return {}
    else:
        spec = _spec_of(program.name)
        code = _loaded(spec)
    names = _names(name, program.path, spec)
    exec(code, names)
    return names


def _put_in_front(folder: str, even_safe: bool = False) -> None:
    """Search *folder* first, in place of the one that this process was started with.

    With a safe path, which is in Python 3.11 or later, there is none to replace, and Python would put in front a program alone.
    """
    safe = getattr(sys.flags, "safe_path", sys.flags.isolated)
    if even_safe or not safe:
        sys.path[0 : 0 if safe else 1] = [folder]


def _substitute_around(folder: Path) -> None:
    """Substitute below *folder*, the working folder, and where PYTHONPATH leads to, unless packages are installed there."""
    searched = map(Path, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    for place in (folder, Path.cwd(), *(place for place in searched if not any(place.glob("*.dist-info")))):
        substitute_below(place)


def _code_of(path: str) -> CodeType:
    return compile(SourceFileLoader(_MAIN, path).get_data(path), path, "exec", dont_inherit=True)


def _spec_of(name: str) -> ModuleSpec:
    """Return the spec of the module *name*, or of what is run of a package."""
    spec = _find(name)
    if spec.submodule_search_locations is not None:
        spec = _find(f"{name}.{_MAIN}")
    return spec


def _find(name: str) -> ModuleSpec:
    spec = None
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):  # one that a package of the program's imports
            raise
    if spec is None:
        _give_up(f"No module named {name}")
    return spec


def _loaded(spec: ModuleSpec) -> CodeType:
    get_code = getattr(spec.loader, "get_code", None)
    code: CodeType | None = None if get_code is None else get_code(spec.name)
    if code is None:
        _give_up(f"{spec.name} has no code of Python's")
    return code


def _give_up(reason: str) -> NoReturn:
    """End as Python does where it has no program to run."""
    sys.exit(f"{sys.executable}: {reason}")


def _run(program: Program, code: CodeType, spec: ModuleSpec | None, folder: Path) -> None:
    _substitute_around(folder)
    substitute_in_children(program)
    main = ModuleType(_MAIN)
    main.__dict__.update(_names(_MAIN, program.path, spec))
    sys.modules[_MAIN] = main
    exec(code, main.__dict__)


def _names(name: str, path: str, spec: ModuleSpec | None) -> dict[str, Any]:
    names: dict[str, Any] = {
        "__name__": name,
        "__file__": path,
        "__spec__": spec,
        "__package__": None,
        "__builtins__": scoped_builtins(),
    }
    if spec is not None:
        names |= {"__package__": spec.parent, "__loader__": spec.loader, "__cached__": spec.cached}
    return names
