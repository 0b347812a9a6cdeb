"""Make a frontend match the release of its framework that it follows: hide what came later, and restore earlier parameters.

A module calls ``follow(globals())`` when it is complete. Which names a release has is recorded (``shim.record``). A function whose parameters were
others before torch 2.14, say, stands in that form in ``_earlier/before_2_14.py`` of its frontend, as a literal function that calls the newest.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pkgutil import iter_modules
from types import FunctionType
from typing import Any, NoReturn, TypeVar

from shim.frontends._absent import Absent, explain_other_releases, frontend_of, refuse_name
from shim.record import FRONTENDS, Record, order_of, recorded_of
from shim.record.releases import followed_by, releases_of

_Function = TypeVar("_Function", bound=Callable[..., Any])

_earlier: dict[object, Callable[..., Any]] = {}  # from a function to its earlier form
_taken: dict[type, dict[str, Any]] = {}


def follow(names: dict[str, Any]) -> None:
    """Leave in *names*, the globals of a frontend's module, what the followed release has, with its parameters."""
    module = names["__name__"]
    frontend = frontend_of(module)
    followed, _ = followed_by(frontend)
    if followed == FRONTENDS[frontend]:
        return
    newest, there = _recorded(module), _recorded(module, followed)
    later = newest.keys() - there.keys()
    explain_other_releases(module, {name: _of_later(module, name) for name in later})
    names.setdefault("__getattr__", _refusing(module))
    for name in later & names.keys():
        del names[name]
    names["__all__"] = [name for name in names["__all__"] if name not in later]
    for name in there.keys() & newest.keys():
        if isinstance(names.get(name), type):
            _take_later_methods(names[name], newest[name], there)
    _import_earlier_forms(frontend, followed)
    for name, thing in names.items():
        while isinstance(thing, FunctionType) and thing in _earlier:
            names[name] = thing = _earlier[thing]


def earlier_form_of(newer: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """Let the decorated function stand for *newer*, whose description and marks it gets, in the releases that its module is for."""

    def keep(function: _Function) -> _Function:
        function.__doc__ = newer.__doc__
        function.__dict__.update(newer.__dict__)
        _earlier[newer] = function
        return function

    return keep


def methods_of(cls: type) -> dict[str, Any]:
    """Return the attributes of *cls*, those too that were taken from it for an older release: torch's own code calls them in its own."""
    return {**vars(cls), **_taken.get(cls, {})}


def has(name: str) -> bool:
    """Tell whether the followed release has what is called *name*, such as ``torch.distributed.gather_single``."""
    module, _, last = f"shim.frontends.{name}".rpartition(".")
    return last in _recorded(module, followed_by(frontend_of(module)).record)


def _refusing(module: str) -> Callable[[str], NoReturn]:
    def __getattr__(name: str) -> NoReturn:
        refuse_name(module, name)

    return __getattr__


def _recorded(module: str, release: str | None = None) -> Mapping[str, Record]:
    found = recorded_of(module, release)
    return {} if found is None else found[1]


def _of_later(module: str, name: str) -> Absent:
    frontend = frontend_of(module)
    followed, why = followed_by(frontend)
    first = next(release for release in releases_of(frontend) if name in _recorded(module, release))
    return Absent(
        f"came with {first}",
        f"The frontend follows {followed}, {why}; SHIM_API={first} asks for the later one.",
    )


def _take_later_methods(cls: type, newest: Record, there: Mapping[str, Record]) -> None:
    """Take from *cls* the methods and properties that the *newest* release has and what is *there* lacks. Other methods may use its attributes."""
    for base in cls.__mro__:
        later = set(newest) - set(there[cls.__name__]) - set(there.get(base.__name__, ()))
        for name in later & vars(base).keys() if base.__module__.startswith("shim.") else ():
            if isinstance(vars(base)[name], (FunctionType, classmethod, property, staticmethod)):
                _taken.setdefault(base, {})[name] = vars(base)[name]
                delattr(base, name)


def _import_earlier_forms(frontend: str, followed: str) -> None:
    """Import the modules with what was otherwise before releases that are later than the *followed* one, the latest first."""
    try:
        package = importlib.import_module(f"{frontend}._earlier")
    except ModuleNotFoundError:
        return
    found = {tuple(map(int, each.name.split("_")[1:])): each.name for each in iter_modules(package.__path__)}
    for before in sorted(found, reverse=True):
        if order_of(followed)[1] < before:
            importlib.import_module(f"{package.__name__}.{found[before]}")
