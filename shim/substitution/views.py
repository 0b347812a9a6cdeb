"""Views of the frameworks' modules, in which a frontend's names stand in for the framework's."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from shim.substitution.group_users import PLACES, is_below, is_never_served, refused, uses_groups
from shim.substitution.mirrors import FRAMEWORKS, mirrors_of, stands_in_for
from shim.substitution.questions import asks, on_the_frontends
from shim.substitution.torch_groups import link_torch

Through = Callable[[Any], Any]  # gives what a view shows in place of a frontend's own

_OWN = ("__all__", "__doc__", "__file__", "__path__", "__version__")
_VIEWED = {
    "torch": (*PLACES["torch"], "torch._C._distributed_c10d", "torch.utils.data"),
    "paddle": (*PLACES["paddle"], "paddle.io"),
    "mindspore": (
        *(*PLACES["mindspore"], "mindspore.amp", "mindspore.boost", "mindspore.context"),
        *("mindspore.nn.wrap", "mindspore.ops", "mindspore.train"),
    ),
}


class ModuleView(ModuleType):
    """A module of a framework with a frontend's names before its own, and with the frontends' objects for the framework's that they mirror.

    What a module further down has of a frontend, as ``torch.distributed`` has below ``torch``, is a view as well. Attributes are
    read when they are asked for, and set on the framework's module, but those of the frontend on the view. What is the frontend's is shown as *through* gives it.
    """

    def __init__(self, real: ModuleType, frontend: ModuleType | None, through: Through | None = None) -> None:
        super().__init__(real.__name__, real.__doc__)
        self.__dict__.update(_shim_real=real, _shim_frontend=frontend, _shim_through=through, __spec__=real.__spec__)
        self.__dict__.update({name: getattr(real, name) for name in _OWN if hasattr(real, name)})
        self.__dict__["__loader__"] = getattr(real, "__loader__", None)
        self.__dict__["__package__"] = getattr(real, "__package__", None)
        self.__dict__["__getattr__"] = self._find  # as a module's, not the class's, which costs every access 100 ns

    def _find(self, name: str) -> Any:
        """Return the attribute *name*, asked for for the first time, or one that may be assigned anew."""
        real, frontend, through = (self.__dict__[f"_shim_{part}"] for part in ("real", "frontend", "through"))
        if name == "__all__":  # asked for by `import *`, of a module that leaves it to its names
            return [public for public in dir(self) if not public.startswith("_")]
        if self._has_frontend(name):
            found = getattr(frontend, name)
            if (
                through is not None
            ):  # a module that only the frontend has, as stream is one of Paddle's, is seen through as well
                found = ModuleView(found, found, through) if isinstance(found, ModuleType) else through(found)
        else:
            found = getattr(real, name)
            if callable(found):
                found = _instead_of(found, real.__name__, name, through)
        if isinstance(found, ModuleType):
            found = view_of(sys.modules.get(f"{real.__name__}.{name}", found), through)
        elif not (callable(found) and (inspect.isroutine(found) or inspect.isclass(found))):
            return found  # a value, which may be assigned anew
        self.__dict__[name] = found
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__.pop(name, None)
        if self._has_frontend(name):
            self.__dict__[name] = value  # the frontend itself stays as it is
        else:
            setattr(self.__dict__["_shim_real"], name, value)

    def __delattr__(self, name: str) -> None:
        was_read_or_set = self.__dict__.pop(name, None) is not None
        if not (was_read_or_set and self._has_frontend(name)):
            delattr(self.__dict__["_shim_real"], name)

    def _has_frontend(self, name: str) -> bool:
        frontend = self.__dict__["_shim_frontend"]
        return frontend is not None and name in frontend.__all__

    def __dir__(self) -> list[str]:
        real, frontend = self.__dict__["_shim_real"], self.__dict__["_shim_frontend"]
        return sorted({*dir(real), *filter(self._has_frontend, frontend.__all__ if frontend is not None else ())})

    def __reduce__(self) -> tuple[Any, ...]:
        return _view_named, (self.__name__,)

    def __repr__(self) -> str:
        frontend = self.__dict__["_shim_frontend"]
        through = f", on {frontend.__name__}" if frontend is not None else ""
        return f"<view of module {self.__name__!r}{through}>"


def _instead_of(thing: Any, module: str, name: str, through: Through | None) -> Any:
    """Return what a program gets for *thing*, which no frontend has under the *name* that it has in the *module*."""
    framework = module.partition(".")[0]
    if framework not in FRAMEWORKS:
        return thing
    home = str(getattr(thing, "__module__", None))
    if not is_below(home, _VIEWED[framework]) and not is_below(module, _VIEWED[framework]):
        return thing  # as nearly everything that a program uses of a framework
    mirrored = mirrors_of(framework).instead_of(thing)
    if mirrored is not None:
        return mirrored if through is None else through(mirrored)
    if is_below(home, PLACES[framework]) and is_never_served(thing):
        return refused(thing, f"{module}.{name}")
    if framework != "torch" and is_below(home, PLACES[framework]) and asks(thing, name, framework):
        return on_the_frontends(thing, functools.partial(view_of, through=through))
    if is_below(home, PLACES[framework]) and uses_groups(thing, framework):
        if framework != "torch":
            return refused(thing, f"{module}.{name}")
        link_torch()
    return thing


def view_of(module: ModuleType, through: Through | None = None) -> ModuleType:
    """Return the view of a framework's *module*, or *module* itself where a program finds nothing in it that is not the framework's.

    What is a frontend's is shown as *through* gives it, where there is one.
    """
    if isinstance(module, ModuleView) or not _is_viewed(module.__name__):
        return module
    return _view(module, through)


def _view_named(name: str) -> ModuleType:
    return view_of(importlib.import_module(name))


@functools.cache
def _is_viewed(name: str) -> bool:
    framework = name.partition(".")[0]
    if framework not in FRAMEWORKS:
        return False
    if stands_in_for(name) is not None or is_below(name, _VIEWED[framework]):
        return True
    return any(place.startswith(f"{name}.") for place in _VIEWED[framework])


@functools.cache
def _view(module: ModuleType, through: Through | None) -> ModuleView:
    name = stands_in_for(module.__name__)
    frontend = None if name is None else importlib.import_module(name)
    return ModuleView(module, frontend if hasattr(frontend, "__all__") else None, through)
