"""Substitution for a block of the caller's module."""

from __future__ import annotations

import builtins
import contextlib
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from shim.substitution.imports import import_view

__all__ = ["as_installed"]

_lock = threading.Lock()
_modules: list[dict[str, Any]] = []  # the globals of those whose block is open, once for each block


def as_installed() -> contextlib.AbstractContextManager[None]:
    """Give the imports in the caller's ``with`` block views of the frameworks, in which the frontends stand in.

    The frontend is the installed framework's, by its version. Other modules' imports meanwhile are not affected, nor are
    other threads' of other modules; names that the block has bound keep their meaning after it. A framework's module that
    was imported before the block is the framework's own.
    """
    return _Block()


class _Block(contextlib.AbstractContextManager[None]):
    """A ``with`` block, and no decorator: it would be about the imports of who calls the function."""

    def __enter__(self) -> None:
        self._scope = _globals_of_caller()
        with _lock:
            if not _modules:
                builtins.__import__ = _Import(builtins.__import__)
            _modules.append(self._scope)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with _lock:
            del _modules[next(i for i, module in enumerate(_modules) if module is self._scope)]
            if not _modules and isinstance(builtins.__import__, _Import):
                builtins.__import__ = builtins.__import__.found


class _Import:
    """Stands in for the ``builtins.__import__`` that a block has *found*, while blocks are open."""

    def __init__(self, found: Callable[..., Any]) -> None:
        self.found = found

    def __call__(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if globals is None:  # called by name, as __import__("torch")
            globals = sys._getframe(1).f_globals
        if any(globals is scope for scope in _modules):
            return import_view(name, globals, locals, fromlist, level)
        return self.found(name, globals, locals, fromlist, level)


def _globals_of_caller() -> dict[str, Any]:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"] in (__name__, "contextlib"):
        frame = frame.f_back
    return frame.f_globals
