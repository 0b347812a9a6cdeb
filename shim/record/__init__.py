"""The signatures of the frameworks' functions and classes, as recorded from the versions the frontends stand for.

One JSON file per framework and version maps modules to names to what is recorded of each:

- a string that starts with ``(``: a function's parameters, with defaults as the framework's source writes them;
- a mapping: a class, with ``__init__`` (without self), its methods, ``property``, and class attributes as ``= value``;
  ``__kind__`` is there and says ``c++`` where all this was read from docstrings, because Python cannot see it;
- ``= value``: a constant; ``exception``, ``method``, ``value``, ``class``: what it is, where there is nothing to compare.

Parameters before ``/`` that are called ``arg0``, ``arg1`` ... have no names in the framework either.
``constants`` gives the value of names that occur in defaults and that the framework does not export.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

Record = str | Mapping[str, str]

# The frontends, each with the record of the newest release whose functions it has.
FRONTENDS = {
    "shim.frontends.mindspore": "mindspore-2.10.0",
    "shim.frontends.paddle_2": "paddle-2.6.2",
    "shim.frontends.paddle_3": "paddle-3.3.1",
    "shim.frontends.torch": "torch-2.15.0",
}

# Modules that also offer what is recorded of others.
_ALSO_OFFERS = {
    "mindspore.communication.management": ("mindspore.communication",),
    "mindspore.mint.distributed.distributed": ("mindspore.mint.distributed",),
    "mindspore.ops": ("mindspore.ops.operations.comm_ops", "mindspore.ops.communication"),
    "mindspore.ops.operations": ("mindspore.ops.operations.comm_ops",),
    "torch.distributed.distributed_c10d": ("torch.distributed",),
    "torch.distributed.nn": ("torch.distributed.nn.functional",),
}

# Names of those that the module has for something else: here the operators on tensors called so.
_SOMETHING_ELSE = {"mindspore.ops": ("gather", "scatter")}


@dataclass(frozen=True)
class Signatures:
    """What is recorded of one framework at one version."""

    framework: str
    version: str
    constants: Mapping[str, str]
    modules: Mapping[str, Mapping[str, Record]]


@dataclass(frozen=True)
class RecordedParameter:
    """One parameter of a recorded function. ``default`` is source text, None where there is no default."""

    name: str
    kind: inspect._ParameterKind
    default: str | None


def recorded_versions() -> list[str]:
    """Return the names of all records, such as ``torch-2.13.0``, by framework and version, the oldest first."""
    files = (path.name.removesuffix(".json") for path in resources.files(__name__).iterdir())
    return sorted((name for name in files if "-" in name), key=order_of)


def order_of(name: str) -> tuple[str, tuple[int, ...]]:
    """Return the framework of a record called *name*, and the numbers of its version."""
    framework, _, version = name.partition("-")
    return framework, tuple(int(part) for part in version.split("."))


@cache
def read(name: str) -> Signatures:
    """Return the signatures in the file called *name*, such as ``torch-2.13.0``."""
    text = (resources.files(__name__) / f"{name}.json").read_text(encoding="utf-8")
    return Signatures(**json.loads(text))


def recorded_of(module: str, release: str | None = None) -> tuple[Signatures, Mapping[str, Record]] | None:
    """Return what is recorded of the framework's module that a frontend's *module* stands for, and the record it is in.

    The record is that of the *release*, such as ``torch-2.13.0``, or the newest one. None where nothing is recorded: for a package that has only
    modules in it, and for the frontend's own private modules.
    """
    for frontend, newest in FRONTENDS.items():
        if module.startswith(f"{frontend}."):
            signatures = read(release or newest)
            theirs = signatures.framework + module.removeprefix(frontend)
            names: dict[str, Record] = {}
            for offering in (*_ALSO_OFFERS.get(theirs, ()), theirs):
                names |= signatures.modules.get(offering, {})
            for name in _SOMETHING_ELSE.get(theirs, ()):
                names.pop(name, None)
            return (signatures, names) if names else None
    return None


def parameters_of(text: str) -> list[RecordedParameter]:
    """Return the parameters that the recorded *text* of a function names, in order."""
    function = ast.parse(f"def recorded{text}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = len(positional) - len(arguments.defaults)
    defaults: list[ast.expr | None] = [*([None] * missing), *arguments.defaults]
    found = []
    for index, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        only = index < len(arguments.posonlyargs)
        kind = inspect.Parameter.POSITIONAL_ONLY if only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        found.append(_parameter(argument, kind, default))
    if arguments.vararg is not None:
        found.append(_parameter(arguments.vararg, inspect.Parameter.VAR_POSITIONAL, None))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(_parameter(argument, inspect.Parameter.KEYWORD_ONLY, default))
    if arguments.kwarg is not None:
        found.append(_parameter(arguments.kwarg, inspect.Parameter.VAR_KEYWORD, None))
    return found


def _parameter(argument: ast.arg, kind: inspect._ParameterKind, default: ast.expr | None) -> RecordedParameter:
    return RecordedParameter(argument.arg, kind, None if default is None else ast.unparse(default))
