"""The frontends' signatures are the recorded ones, and the recorded ones are those of the installed frameworks."""

from __future__ import annotations

import ast
import datetime
import enum
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest

import shim.frontends
from shim.conformance.signatures import (
    FRONTENDS,
    Record,
    RecordedParameter,
    Signatures,
    parameters_of,
    read,
    recorded_of,
)

# Public names of frontends of which nothing is recorded, each with the reason.
NOT_RECORDED = {
    "shim.frontends.mindspore.mint.distributed.CommHandle": "what its functions return; MindSpore keeps it in comm_func",
    "shim.frontends.paddle_2.distributed.Group": "the type of every group; Paddle keeps it in communication.group",
    "shim.frontends.paddle_3.distributed.Group": "likewise",
    "shim.frontends.torch.distributed.distributed_c10d.SHRINK_ABORT": "a constant that shrink_group takes",
    "shim.frontends.torch.distributed.distributed_c10d.SHRINK_DEFAULT": "likewise",
    "shim.frontends.torch.distributed.distributed_c10d._world": "the one _World, of which the class is recorded",
    "shim.frontends.torch.distributed._make_nccl_premul_sum": "a function of C++ with overloads",
    "shim.frontends.torch.distributed.distributed_c10d._make_nccl_premul_sum": "likewise",
}

# Recorded constructors that ours does not repeat, each with the reason.
NOT_REPEATED = {"Work.__init__": "torch's is C++ and takes nothing; in torch as here, only calls make one"}

# Functions of C++, which have no signature that Python can read; what is recorded is their docstring's.
BUILT_IN = {"_resolve_process_group", "get_debug_level", "set_debug_level", "set_debug_level_from_env"}

INSTALLED = ("mindspore-2.10.0", "paddle-3.3.1", "torch-2.13.0")


def differences(
    theirs: str, ours: inspect.Signature, names: Mapping[str, Any], constants: Mapping[str, str]
) -> list[str]:
    """Tell how *ours* differs from the recorded signature *theirs*, whose defaults are looked up in *names*."""
    recorded, given = parameters_of(theirs), list(ours.parameters.values())
    if len(recorded) != len(given):
        return [f"recorded {theirs}, got {ours}"]
    found = []
    for expected, parameter in zip(recorded, given, strict=True):
        unnamed = expected.kind is inspect.Parameter.POSITIONAL_ONLY and expected.name.startswith("arg")
        if not unnamed and (expected.name, expected.kind) != (parameter.name, parameter.kind):
            found.append(f"recorded {expected.name} ({expected.kind}), got {parameter.name} ({parameter.kind})")
        elif not same_default(expected, parameter.default, names, constants):
            found.append(f"recorded {expected.name}={expected.default}, got {parameter.default!r}")
    return found


def same_default(
    expected: RecordedParameter, given: object, names: Mapping[str, Any], constants: Mapping[str, str]
) -> bool:
    """Compare by value and type, so that True is not 1; a name stands for what it stands for among *names*."""
    if expected.default is None or given is inspect.Parameter.empty:
        return expected.default is None and given is inspect.Parameter.empty
    value = value_of(constants.get(expected.default, expected.default), names)
    return value is given or (type(value) is type(given) and value == given)


def value_of(source: str, names: Mapping[str, Any]) -> object:
    try:
        return ast.literal_eval(source)
    except ValueError:
        return eval(source, {"datetime": datetime, "timedelta": datetime.timedelta, **names})


def recorded_objects(module: ModuleType, records: Mapping[str, Record]) -> Iterator[tuple[str, str, Any]]:
    """Yield the functions, constructors and methods that *module* has and *records* names, with the record."""
    for name, record in records.items():
        thing = getattr(module, name, None)
        if isinstance(record, str):
            if record.startswith("(") and thing is not None:
                yield name, record, thing
        elif inspect.isclass(thing) and not issubclass(thing, enum.Enum):
            for member, text in record.items():
                if not text.startswith("(") or f"{name}.{member}" in NOT_REPEATED:
                    continue
                if member in vars(thing):
                    yield f"{name}.{member}", text, vars(thing)[member]
                elif member == "__init__":
                    yield f"{name}.{member}", text, thing


def differences_of(module: ModuleType, signatures: Signatures, records: Mapping[str, Record]) -> list[str]:
    found = []
    for name, text, thing in recorded_objects(module, records):
        thing = getattr(thing, "__func__", thing)  # of a classmethod or staticmethod
        signature = inspect.signature(thing)
        if "." in name and not inspect.isclass(thing):
            signature = signature.replace(parameters=list(signature.parameters.values())[1:])
        names = vars(sys.modules[thing.__module__])
        found += [f"{name}: {line}" for line in differences(text, signature, names, signatures.constants)]
    return found


def public_modules() -> list[str]:
    names = [module.name for module in pkgutil.walk_packages(shim.frontends.__path__, "shim.frontends.", _reraise)]
    return [name for name in names if name != "shim.frontends.paddle" and "._" not in name and name not in FRONTENDS]


def _reraise(name: str) -> None:
    if name != "shim.frontends.paddle":  # importing that one says which Paddle to choose
        raise


@pytest.mark.parametrize("name", public_modules())
def test_a_frontend_has_the_recorded_signatures(name: str) -> None:
    module = importlib.import_module(name)
    found = recorded_of(name)
    if found is None:
        assert offered(module) == set(), f"nothing is recorded of {name}"
    else:
        assert differences_of(module, *found) == []


@pytest.mark.parametrize("name", public_modules())
def test_a_frontend_offers_what_its_framework_offers(name: str) -> None:
    found = recorded_of(name)
    recorded = set() if found is None else set(found[1])
    unknown = offered(importlib.import_module(name)) - recorded
    allowed = {known for known in NOT_RECORDED if known.rpartition(".")[0] == name}
    assert {f"{name}.{public}" for public in unknown} == allowed


def offered(module: ModuleType) -> set[str]:
    """Return what *module* lists in ``__all__``, its submodules aside."""
    return {name for name in getattr(module, "__all__", ()) if not inspect.ismodule(getattr(module, name))}


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_every_frontend_is_looked_at(frontend: str) -> None:
    assert any(name.startswith(f"{frontend}.") for name in public_modules())


@pytest.mark.parametrize("file", INSTALLED)
def test_the_record_is_what_the_installed_framework_has(file: str) -> None:
    """In a process of its own, where no other framework can get in the way."""
    ended = subprocess.run([sys.executable, __file__, file], capture_output=True, text=True, check=False, timeout=240)
    assert (ended.returncode, ended.stdout.splitlines()[-1:]) == (0, ["as recorded"]), ended.stdout + ended.stderr


def found_at(name: str) -> Any:
    """Return the module called *name*, which may be known by that name only to the module above it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        above, _, last = name.rpartition(".")
        return getattr(importlib.import_module(above), last)


def compare_installed(file: str) -> list[str]:
    signatures = read(file)
    framework = importlib.import_module(signatures.framework)
    found = []
    if framework.__version__.partition("+")[0] != signatures.version:
        found.append(f"{signatures.framework} {signatures.version} is recorded, {framework.__version__} is installed")
    for name in signatures.modules:
        module = found_at(name)
        absent = [thing for thing in signatures.modules[name] if not hasattr(module, thing)]
        if absent:
            found.append(f"{name} has no {', '.join(absent)}")
        readable = {thing: record for thing, record in signatures.modules[name].items() if not built_in(thing, record)}
        found += differences_of(module, signatures, readable)
    return found


def built_in(name: str, record: Record) -> bool:
    return name in BUILT_IN or (not isinstance(record, str) and "__kind__" in record)


@pytest.mark.parametrize(
    ("theirs", "function"),
    [
        ("(a, b=None)", lambda a, b=None: (a, b)),
        ("(a, *, b=1)", lambda a, *, b=1: (a, b)),
        ("(*a, **b)", lambda *a, **b: (a, b)),
        ("(arg0, /)", lambda value: value),
        ("(a=timedelta(seconds=1))", lambda a=datetime.timedelta(seconds=1): a),
        ("(a=LIMIT)", lambda a=7: a),
        ("(a=_hidden)", lambda a=8: a),
    ],
)
def test_equal_signatures_are_equal(theirs: str, function: Any) -> None:
    assert differences(theirs, inspect.signature(function), {"LIMIT": 7}, {"_hidden": "8"}) == []


@pytest.mark.parametrize(
    ("theirs", "function"),
    [
        ("(a, b)", lambda b, a: (a, b)),
        ("(a, b)", lambda a: a),
        ("(a)", lambda a, b: (a, b)),
        ("(a, b)", lambda a, *, b: (a, b)),
        ("(a, b)", lambda a, b=None: (a, b)),
        ("(a, b=None)", lambda a, b: (a, b)),
        ("(a=True)", lambda a=1: a),
        ("(a=0)", lambda a=False: a),
        ("(a=LIMIT)", lambda a=8: a),
        ("(*a)", lambda a: a),
    ],
)
def test_different_signatures_differ(theirs: str, function: Any) -> None:
    assert len(differences(theirs, inspect.signature(function), {"LIMIT": 7}, {})) > 0


if __name__ == "__main__":
    mismatches = compare_installed(sys.argv[1])
    sys.stdout.write("\n".join(mismatches) or "as recorded")
    sys.exit(bool(mismatches))
