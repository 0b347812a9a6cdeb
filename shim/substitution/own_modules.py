"""Which modules are a program's own, whose imports get views, by whatever they were loaded: Python, pytest's rewriting of asserts, or a runner's ``exec``."""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from shim.substitution.importlib_bootstrap import ImportHook
from shim.substitution.torch_groups import serve_torch_when_imported

_MAINS = ("__main__", "__mp_main__")  # the program, and the same in a process that it has spawned

_OURS = Path(__file__).resolve().parents[1]

_folders: list[Path] = []


def substitute_below(folder: Path) -> None:
    """From now on, give the imports of the modules below *folder*, or in a zip file, views; what they have imported already stays as it is."""
    folder = folder.resolve()
    if not _folders:
        _hook.install()
        serve_torch_when_imported()
    if folder not in _folders:
        _folders.append(folder)
        is_own.cache_clear()


def own_folders() -> tuple[str, ...]:
    """Return the folders and zip files below which modules are the program's own."""
    return tuple(map(str, _folders))


def _gets_views(names: Mapping[str, Any], importer: FrameType) -> bool:
    """Tell whether *names*, with which the frame *importer* imports, are the globals of a module of the program's, or of text that it executes."""
    module = names.get("__name__")
    if module in _MAINS:
        return True
    file = names.get("__file__")
    if not isinstance(file, str):
        file = getattr(sys.modules.get(str(module).partition(".")[0]), "__file__", None)
    if file is not None:
        return is_own(file)
    return _is_loaded_by_python(names.get("__spec__")) or not _is_executed_by_a_library(names, importer)


def _is_loaded_by_python(spec: Any) -> bool:
    """Tell whether a module with *spec* is Python's own to load, and not one that an installed package makes, as torch does for its RemoteModule."""
    if spec is None:
        return False
    loader = getattr(spec.loader, "__module__", None) or type(spec.loader).__module__
    file = getattr(sys.modules.get(loader), "__file__", None)
    return file is None or _is_pythons_or_ours(file) or is_own(file)


def _is_executed_by_a_library(names: Mapping[str, Any], importer: FrameType) -> bool:
    """Tell whether text with the globals *names* is being executed by an installed package, be it through the standard library.

    Of a function that the text has defined, and that is called later, nobody can tell who executed the text.
    """
    outermost, caller = None, _find(importer, lambda frame: frame.f_globals is names)
    while caller is not None and caller.f_globals is names:
        outermost, caller = caller, caller.f_back
    if outermost is None:  # somebody calls __import__ with these globals
        caller = importer
    elif outermost.f_code.co_name != "<module>":
        return False
    executor = _find(caller, lambda frame: not _is_between(frame.f_globals))
    return executor is not None and not _is_of_the_program(executor.f_globals)


def _find(frame: FrameType | None, is_wanted: Callable[[FrameType], bool]) -> FrameType | None:
    while frame is not None and not is_wanted(frame):
        frame = frame.f_back
    return frame


def _is_between(names: Mapping[str, Any]) -> bool:
    """Tell whether a module with these globals is no executor by itself: other text, the standard library, or this package."""
    file = names.get("__file__")
    return names.get("__name__") not in _MAINS and (not isinstance(file, str) or _is_pythons_or_ours(file))


def _is_of_the_program(names: Mapping[str, Any]) -> bool:
    return names.get("__name__") in _MAINS or is_own(str(names.get("__file__")))


_hook = ImportHook(_gets_views)


@functools.cache
def is_own(file: str) -> bool:
    """Tell whether what lies at *file* is the program's own."""
    found = Path(file).resolve()
    return any(map(found.is_relative_to, _folders)) and not any(map(found.is_relative_to, _installed()))


@functools.cache
def _is_pythons_or_ours(file: str) -> bool:
    """Tell whether the module at *file* is of the standard library or of this package."""
    paths = sysconfig.get_paths()
    found, folders = Path(file).resolve(), (_OURS, *_resolved(paths["stdlib"], paths["platstdlib"]))
    return any(map(found.is_relative_to, folders)) and not any(map(found.is_relative_to, _packages()))


@functools.cache
def _installed() -> tuple[Path, ...]:
    """Return the folders of what is not the program's own, though they may lie below its folder."""
    return (*_packages(), *_resolved(*sysconfig.get_paths().values()), _OURS)


@functools.cache
def _packages() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return _resolved(*site.getsitepackages(), site.getusersitepackages(), paths["purelib"], paths["platlib"])


def _resolved(*places: str) -> tuple[Path, ...]:
    return tuple(Path(place).resolve() for place in places if os.path.isabs(place))
