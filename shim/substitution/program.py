"""Substitution for a program: a script, folder, zip file or module, its own modules, and the processes that it starts."""

from __future__ import annotations

import builtins
import contextlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn

from shim.frontends._after_import import after_import
from shim.substitution.own_modules import is_own, own_folders, substitute_below

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
        _run(path, _code_of(path), None, Path(folder))
    else:
        spec = finder.find_spec(_MAIN)
        if spec is None:
            _give_up(f"can't find {_MAIN!r} module in {path!r}")
        _put_in_front(path, even_safe=True)
        _run(str(spec.origin), _loaded(spec), spec, Path(path))


def run_module(name: str, arguments: Sequence[str] = ()) -> None:
    """Run the module *name* as ``python -m name arguments`` does, with views for its imports and its package's."""
    _put_in_front(os.getcwd())
    _substitute_around(Path.cwd())  # the package is imported to find the module in it
    spec = _spec_of(name)
    path = str(spec.origin)
    sys.argv[:] = [path, *arguments]
    if not is_own(path):
        _substitute_around_named(arguments)
    _run(path, _loaded(spec), spec, Path.cwd())


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


def _substitute_around_named(arguments: Sequence[str]) -> None:
    """Substitute around the files, and below the folders, that an installed runner, such as pytest, is given among its *arguments*."""
    for place in (Path(argument.partition("::")[0]) for argument in arguments):
        with contextlib.suppress(OSError, ValueError):  # it is no path
            if place.exists():
                substitute_below(place if place.is_dir() else place.parent)


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


def _run(path: str, code: CodeType, spec: ModuleSpec | None, folder: Path) -> None:
    _substitute_around(folder)
    _substitute_in_children()
    main = ModuleType(_MAIN)
    main.__dict__.update(__file__=path, __spec__=spec, __package__=None, __builtins__=builtins)
    if spec is not None:
        main.__dict__.update(__package__=spec.parent, __loader__=spec.loader, __cached__=spec.cached)
    sys.modules[_MAIN] = main
    exec(code, main.__dict__)


def _substitute_in_children() -> None:
    """From here on the processes that this one spawns run its program with views, and so do theirs.

    ``multiprocessing`` is left for the program to import: the first who does gives the program's module a second name, by which Python
    knows at its end when to free what the module holds.
    """
    after_import("multiprocessing.spawn", _replace_preparation)


def _replace_preparation(spawn: Any) -> None:
    prepare = spawn.get_preparation_data

    def prepare_with_views(name: str) -> dict[str, Any]:
        return {"shim_views": _ViewsForChild(), **prepare(name)}

    spawn.get_preparation_data = prepare_with_views


class _ViewsForChild:
    """Comes to a spawned process by pickle, before that imports its parent's program again, and has its modules get views there.

    A forked process has its views from its parent.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _substitute_in_child, own_folders()


def _substitute_in_child(*folders: str) -> None:
    for folder in folders:
        substitute_below(Path(folder))
    _substitute_in_children()
