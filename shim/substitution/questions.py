"""Helpers of a framework that only ask: for the rank, the groups, the parallel mode. Their own code answers a substituted program, on what the frontends know.

torch's need none of this, as its world is the program's.
"""

from __future__ import annotations

import builtins
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from types import CellType, FunctionType, ModuleType
from typing import Any

from shim.substitution.group_users import PLACES, is_below, named_by
from shim.substitution.mirrors import mirrors_of

_View = Callable[[ModuleType], ModuleType]

_QUESTION = re.compile(r"_*(check|default|get|has|in|is|need|query|should)_")
# What is no question by its name, and holds or returns answers.
_HOLDERS = (
    "CollectiveManager",
    "GlobalComm",
    "Group",
    "ParallelEnv",
    "_ExistingGroup",
    "_GroupManager",
    "auto_parallel_context",
)


def asks(thing: Any, name: str, framework: str) -> bool:
    """Tell whether *thing*, found as *name*, is a function named as a question, whose code comes to what the frontends answer and to nothing else of theirs."""
    if not isinstance(thing, FunctionType) or not _QUESTION.match(name):
        return False
    found = set(_reached(thing, framework, {id(thing)}))
    return bool(found) and all(_QUESTION.match(one) or one in _HOLDERS for one in found)


def _reached(thing: Any, framework: str, seen: set[int]) -> Iterator[str]:
    """Yield the names of what the code of *thing* comes to and frontends have."""
    for one in (*named_by(thing, framework), *_enclosed(thing)):
        if id(one) in seen:
            continue
        seen.add(id(one))
        mirrored = mirrors_of(framework).find(one)
        if mirrored is not None:
            yield mirrored[1]
        elif is_below(str(getattr(one, "__module__", None)), PLACES[framework]):
            yield from _reached(one, framework, seen)


def _enclosed(thing: Any) -> list[Any]:
    """Return the functions that *thing* has in its closure, as the one that a decorator wraps."""
    cells = getattr(thing, "__closure__", None) or ()
    return [cell.cell_contents for cell in cells if _holds_function(cell)]


def _holds_function(cell: CellType) -> bool:
    try:
        return isinstance(cell.cell_contents, FunctionType)
    except ValueError:  # it is empty
        return False


def on_the_frontends(function: FunctionType, view_of: _View) -> FunctionType:
    """Return *function* with the same code, to which each name, and each import, is what a substituted program finds by *view_of*."""
    cells = function.__closure__ or ()
    closure = tuple(
        CellType(on_the_frontends(cell.cell_contents, view_of)) if _holds_function(cell) else cell for cell in cells
    )
    names = _Names(function.__globals__, view_of)
    same = FunctionType(function.__code__, names, function.__name__, function.__defaults__, closure)
    same.__kwdefaults__ = function.__kwdefaults__
    same.__dict__.update(function.__dict__)
    same.__doc__, same.__module__, same.__qualname__ = function.__doc__, function.__module__, function.__qualname__
    return same


class _Names(dict[str, Any]):
    """The globals of a framework's module as a program sees them. Python asks a derived dict's ``__missing__`` for a global, too."""

    def __init__(self, real: dict[str, Any], view_of: _View) -> None:
        def import_view(name: str, globals: Any = None, locals: Any = None, names: Any = (), level: int = 0) -> Any:
            return view_of(importlib.__import__(name, globals, locals, names or (), level))

        super().__init__({name: value for name, value in real.items() if name.startswith("__") and name.endswith("__")})
        self["__builtins__"] = {**vars(builtins), "__import__": import_view}
        self._view = view_of(sys.modules[real["__name__"]])

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(self._view, name)
        except AttributeError:
            raise KeyError(name) from None
