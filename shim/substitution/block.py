"""Substitution for a block of the caller's module."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Mapping
from types import FrameType, TracebackType
from typing import Any

from shim.substitution.importlib_bootstrap import ImportHook

_lock = threading.Lock()
_modules: list[dict[str, Any]] = []  # the globals of those whose block is open, once for each block


def as_installed() -> contextlib.AbstractContextManager[None]:
    """Give the imports in the caller's ``with`` block views of the frameworks, in which the frontends stand in.

    The frontend is the installed framework's, by its version. Other modules' imports meanwhile are not affected, nor are
    other threads' of other modules; names that the block has bound keep their meaning after it. A framework's module that
    was imported before the block is the framework's own. From the first name on that needs torch's process groups, the
    frontend's world is torch's too; torch's own gloo stays gloo.
    """
    return _Block()


class _Block(contextlib.AbstractContextManager[None]):
    """A ``with`` block, and no decorator: it would be about the imports of who calls the function."""

    def __enter__(self) -> None:
        self._scope = _globals_of_caller()
        with _lock:
            if not _modules:
                _hook.install()
            _modules.append(self._scope)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with _lock:
            del _modules[next(i for i, module in enumerate(_modules) if module is self._scope)]
            if not _modules:
                _hook.remove()


def _is_in_a_block(names: Mapping[str, Any], importer: FrameType) -> bool:
    return any(names is scope for scope in _modules)


_hook = ImportHook(_is_in_a_block)


def _globals_of_caller() -> dict[str, Any]:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"] in (__name__, "contextlib"):
        frame = frame.f_back
    return frame.f_globals
