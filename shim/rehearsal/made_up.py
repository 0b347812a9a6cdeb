"""Tells where a program reads a number out of what a rehearsal has made up: what it calls next may depend on it."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from shim.core.engines.rehearsal.engine import RehearsalEngine
from shim.core.tensors.hollow import is_taken
from shim.core.tracing.places import Place, place_of_caller, see_through
from shim.core.tracing.recorder import note
from shim.frontends._after_import import after_import

_READINGS = ("item", "tolist", "__bool__", "__int__", "__float__", "__index__")
_CLASSES = {"torch": "Tensor", "paddle": "Tensor", "mindspore": "Tensor"}  # by module
_known: dict[object, int] = {}  # versions of what calls have written, when they had
_alive: dict[object, weakref.ref[Any]] = {}  # the tensors of those keys that may be used again for others
_told: set[str] = set()


def watch_readings() -> None:
    """Note, from now on, readings of the tensors that calls write, whenever a framework is loaded. Numpy's arrays cannot be watched."""
    RehearsalEngine.answered[:] = [_answered]
    see_through("shim.rehearsal")
    for module in _CLASSES:
        after_import(module, _watch)


def _watch(framework: Any) -> None:
    kind = getattr(framework, _CLASSES[framework.__name__], None)
    for reading in _READINGS if kind is not None else ():
        if method := getattr(kind, reading, None):
            with suppress(TypeError, AttributeError):  # of a class whose methods cannot be replaced
                setattr(kind, reading, _watched(method))


def note_reading() -> None:
    """Note the line of the program that runs, once."""
    source = Place(*place_of_caller(1)).text()
    if source not in _told:
        _told.add(source)
        note({"kind": "made_up", "source": source})


def _watched(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def read(tensor: Any, *arguments: Any, **named: Any) -> Any:
        with suppress(Exception):
            if _is_made_up(tensor):
                note_reading()
        return method(tensor, *arguments, **named)

    return read


def _answered(tensors: Any) -> None:
    for tensor in tensors if isinstance(tensors, (list, tuple)) else (tensors,):
        with suppress(Exception):  # what cannot be referred to, and has no address, is not watched
            key = _key_of(tensor)
            _known[key] = _version_of(tensor)
            if isinstance(key, int):
                _alive[key] = weakref.ref(tensor)


def _is_made_up(tensor: Any) -> bool:
    """Tell whether *tensor* shows memory that is as a call has left it; what shares the memory counts versions together."""
    key = _key_of(tensor)
    if key not in _known or _version_of(tensor) != _known[key]:
        return False
    return key not in _alive or _alive[key]() is tensor


def _key_of(tensor: Any) -> object:
    storage = getattr(tensor, "untyped_storage", None)
    return id(tensor) if storage is None or is_taken(tensor) else ("storage", storage().data_ptr())


def _version_of(tensor: Any) -> int:
    version = getattr(tensor, "_version", 0)
    return version if isinstance(version, int) else 0
