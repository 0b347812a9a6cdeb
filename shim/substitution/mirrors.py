"""Which of our modules mirrors which of a framework's, and which of our names is which object of the framework."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from types import ModuleType
from typing import Any

from shim.errors import UnsupportedError
from shim.record.releases import version_of

FRAMEWORKS = ("torch", "paddle", "mindspore")

# What no frontend offers, and asks the framework's own world which rank this is, or for its parallel mode: the modules, and ours with what asks the program's.
_ASKING = {
    "mindspore": {
        "mindspore.boost.boost_cell_wrapper": "shim.frontends.mindspore._training.boost_cells",
        "mindspore.communication._comm_helper": "shim.frontends.mindspore._groups.collective_manager",
        "mindspore.context": "shim.frontends.mindspore._training.parallel_mode",
        "mindspore.nn.wrap.cell_wrapper": "shim.frontends.mindspore._training.train_cells",
        "mindspore.nn.wrap.loss_scale": "shim.frontends.mindspore._training.train_cells",
        "mindspore.parallel._auto_parallel_context": "shim.frontends.mindspore._training.parallel_mode",
        "mindspore.train.amp": "shim.frontends.mindspore._training.model",
        "mindspore.train.model": "shim.frontends.mindspore._training.model",
    },
    "paddle": {
        "paddle.hapi.model": "shim.substitution.hapi_model",
        "paddle.io": "shim.frontends._paddle.training.batch_sampler",
    },
    "torch": {"torch.utils.data.distributed": "shim.frontends.torch._groups.sampler"},
}


def frontends_of_installed() -> dict[str, str]:
    """Return the package of frontends for each framework that is installed, chosen by its version."""
    return {framework: root for framework in FRAMEWORKS if (root := _root_for(framework)) is not None}


@functools.cache
def _root_for(framework: str) -> str | None:
    try:
        version = version_of(framework)
    except importlib.metadata.PackageNotFoundError:
        return None
    if framework != "paddle":
        return f"shim.frontends.{framework}"
    major = version.partition(".")[0]
    if major not in ("2", "3"):
        raise UnsupportedError(f"there is no frontend for Paddle {version}\nThere are those for Paddle 2 and 3.")
    return f"shim.frontends.paddle_{major}"


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


class Mirrors:
    """The objects that a framework has under the names which the frontends below *root* have too.

    They are told by identity, so it does not matter by which path somebody comes to one. The framework's modules are looked at when they are
    loaded, and are not imported for it.
    """

    def __init__(self, framework: str, root: str) -> None:
        self._waiting = {f"{framework}{name.removeprefix(root)}": name for name in _public_modules(root)}
        self._waiting |= _ASKING.get(framework, {})
        self._names: dict[int, tuple[ModuleType, str]] = {}
        self._things: list[Any] = []  # kept, so that an identity is not given to something else

    def instead_of(self, thing: Any) -> Any:
        """Return the frontend's object that stands in for the framework's *thing*, None where there is none."""
        found = self.find(thing)
        return None if found is None else getattr(*found)

    def find(self, thing: Any) -> tuple[ModuleType, str] | None:
        """Return the frontend's module and the name in it for the framework's *thing*, None where there are none."""
        for path in [path for path in self._waiting if path in sys.modules]:
            self._look_at(sys.modules[path], importlib.import_module(self._waiting.pop(path)))
        return self._names.get(id(thing))

    def _look_at(self, real: ModuleType, frontend: ModuleType) -> None:
        for name in getattr(frontend, "__all__", ()):
            thing = vars(real).get(name)
            if callable(thing):  # other things, such as numbers and texts, may be the same by chance
                self._names.setdefault(id(thing), (frontend, name))
                self._things.append(thing)


@functools.cache
def mirrors_of(framework: str) -> Mirrors:
    """Return the mirrors of an installed *framework*."""
    root = _root_for(framework)
    assert root is not None
    return Mirrors(framework, root)


def _public_modules(root: str) -> list[str]:
    package = importlib.import_module(root)
    below = pkgutil.walk_packages(package.__path__, f"{root}.")
    names = [module.name for module in below]
    return [root, *(name for name in names if not any(part.startswith("_") for part in name.split(".")))]
