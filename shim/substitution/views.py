"""Views of the frameworks' modules, in which a frontend's names stand in for the framework's."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from shim.errors import UnsupportedError

__all__ = ["FRAMEWORKS", "ModuleView", "Through", "frontends_of_installed", "stands_in_for", "view_of"]

FRAMEWORKS = ("torch", "paddle", "mindspore")

_PACKAGES = {"torch": ("torch",), "paddle": ("paddlepaddle", "paddlepaddle-gpu"), "mindspore": ("mindspore",)}
Through = Callable[[Any], Any]  # gives what a view shows in place of a frontend's own

_OWN = ("__all__", "__doc__", "__file__", "__path__", "__version__")


def frontends_of_installed() -> dict[str, str]:
    """Return the package of frontends for each framework that is installed, chosen by its version."""
    return {framework: root for framework in FRAMEWORKS if (root := _root_for(framework)) is not None}


@functools.cache
def _root_for(framework: str) -> str | None:
    version = _installed_version(framework)
    if version is None:
        return None
    if framework != "paddle":
        return f"shim.frontends.{framework}"
    major = version.partition(".")[0]
    if major not in ("2", "3"):
        raise UnsupportedError(f"there is no frontend for Paddle {version}\nThere are those for Paddle 2 and 3.")
    return f"shim.frontends.paddle_{major}"


def _installed_version(framework: str) -> str | None:
    for package in _PACKAGES[framework]:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


class ModuleView(ModuleType):
    """A module of a framework with a frontend's names before its own.

    What a module further down has of a frontend, as ``torch.distributed`` has below ``torch``, is a view as well. Attributes are
    read when they are asked for, and set on the framework's module. What is the frontend's is shown as *through* gives it.
    """

    def __init__(self, real: ModuleType, frontend: ModuleType | None, through: Through | None = None) -> None:
        super().__init__(real.__name__, real.__doc__)
        self.__dict__.update(_shim_real=real, _shim_frontend=frontend, _shim_through=through, __spec__=real.__spec__)
        self.__dict__.update({name: getattr(real, name) for name in _OWN if hasattr(real, name)})
        self.__dict__["__loader__"] = getattr(real, "__loader__", None)
        self.__dict__["__package__"] = getattr(real, "__package__", None)

    def __getattr__(self, name: str) -> Any:
        real, frontend, through = (self.__dict__[f"_shim_{part}"] for part in ("real", "frontend", "through"))
        if name == "__all__":  # asked for by `import *`, of a module that leaves it to its names
            return [public for public in dir(self) if not public.startswith("_")]
        if frontend is not None and name in frontend.__all__:
            found = getattr(frontend, name)
            if (
                through is not None
            ):  # a module that only the frontend has, as stream is one of Paddle's, is seen through as well
                found = ModuleView(found, found, through) if isinstance(found, ModuleType) else through(found)
        else:
            found = getattr(real, name)
        if isinstance(found, ModuleType):
            found = view_of(sys.modules.get(f"{real.__name__}.{name}", found), through)
        if isinstance(found, ModuleType) or inspect.isroutine(found) or inspect.isclass(found):
            self.__dict__[name] = found  # these are not assigned anew, and are read often
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__.pop(name, None)
        setattr(self.__dict__["_shim_real"], name, value)

    def __delattr__(self, name: str) -> None:
        self.__dict__.pop(name, None)
        delattr(self.__dict__["_shim_real"], name)

    def __dir__(self) -> list[str]:
        frontend = self.__dict__["_shim_frontend"]
        return sorted({*dir(self.__dict__["_shim_real"]), *(frontend.__all__ if frontend is not None else ())})

    def __repr__(self) -> str:
        frontend = self.__dict__["_shim_frontend"]
        through = f", on {frontend.__name__}" if frontend is not None else ""
        return f"<view of module {self.__name__!r}{through}>"


def view_of(module: ModuleType, through: Through | None = None) -> ModuleType:
    """Return the view of a framework's *module*, or *module* itself where no frontend has anything of it.

    What is a frontend's is shown as *through* gives it, where there is one.
    """
    if isinstance(module, ModuleView) or not stands_in_for(module.__name__):
        return module
    return _view(module, through)


@functools.cache
def _view(module: ModuleType, through: Through | None) -> ModuleView:
    name = stands_in_for(module.__name__)
    assert name is not None
    frontend = importlib.import_module(name)
    return ModuleView(module, frontend if hasattr(frontend, "__all__") else None, through)


@functools.cache
def stands_in_for(module: str) -> str | None:
    """Return the name of our module that mirrors the framework's *module*, None where there is none."""
    framework, _, path = module.partition(".")
    root = _root_for(framework) if framework in FRAMEWORKS else None
    if root is None:
        return None
    name = f"{root}.{path}" if path else root
    try:
        return name if importlib.util.find_spec(name) is not None else None
    except ModuleNotFoundError:
        return None
