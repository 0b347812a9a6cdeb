"""Substitution for a block of the caller's module."""

from __future__ import annotations

import builtins
import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

from shim.substitution.imports import import_view

__all__ = ["as_installed"]

_lock = threading.Lock()
_modules: list[dict[str, Any]] = []  # the globals of those whose block is open, once for each block
_import = builtins.__import__


@contextlib.contextmanager
def as_installed() -> Iterator[None]:
    """Give the imports in the caller's ``with`` block views of the frameworks, in which the frontends stand in.

    The frontend is the installed framework's, by its version. Other modules' imports meanwhile are not affected, nor are
    other threads' of other modules; names that the block has bound keep their meaning after it. A framework's module that
    was imported before the block is the framework's own.
    """
    scope = _globals_of_caller()
    with _lock:
        if not _modules:
            builtins.__import__ = _import_for_blocks
        _modules.append(scope)
    try:
        yield
    finally:
        with _lock:
            del _modules[next(i for i, module in enumerate(_modules) if module is scope)]
            if not _modules and builtins.__import__ is _import_for_blocks:
                builtins.__import__ = _import


def _globals_of_caller() -> dict[str, Any]:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"] in (__name__, "contextlib"):
        frame = frame.f_back
    return frame.f_globals


def _import_for_blocks(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    if globals is None:  # called by name, as __import__("torch")
        globals = sys._getframe(1).f_globals
    if any(globals is scope for scope in _modules):
        return import_view(name, globals, locals, fromlist, level)
    return _import(name, globals, locals, fromlist, level)
