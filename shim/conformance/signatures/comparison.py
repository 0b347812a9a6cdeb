"""Compare signatures: the frontends' with the recorded ones, but for exceptions, and the recorded ones with an installed framework's.

``python -m shim.conformance.signatures.comparison torch-2.13.0`` does the latter, in a process of its own, where no other framework gets in
the way. The last line says ``as recorded``, or what differs.
"""

from __future__ import annotations

import ast
import datetime
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

from shim.record import Record, RecordedParameter, Signatures, parameters_of, read
from shim.record.releases import followed_by

# Recorded names that a frontend knowingly does not have, each with the reason.
_COMM_OPS = "mindspore.ops.operations.comm_ops"

_OF_THE_COMPILER = "is put into graphs by MindSpore's parallel compiler; communicates nothing"

EXCEPTIONS = {
    f"{_COMM_OPS}._GetTensorSlice": _OF_THE_COMPILER,
    f"{_COMM_OPS}._VirtualAccuGrad": _OF_THE_COMPILER,
    f"{_COMM_OPS}._VirtualAdd": _OF_THE_COMPILER,
    f"{_COMM_OPS}._VirtualAssignKvCache": _OF_THE_COMPILER,
    f"{_COMM_OPS}._VirtualDataset": _OF_THE_COMPILER,
    f"{_COMM_OPS}._VirtualDiv": _OF_THE_COMPILER,
    f"{_COMM_OPS}._VirtualOutput": _OF_THE_COMPILER,
    f"{_COMM_OPS}._VirtualPipelineEnd": _OF_THE_COMPILER,
}

if importlib.util.find_spec("torch") is None:
    _FUNCTIONAL = "torch.distributed._functional_collectives"
    EXCEPTIONS[f"{_FUNCTIONAL}.AsyncCollectiveTensor"] = "is a subclass of torch's Tensor, and torch is not installed"

# Recorded members of classes that ours does not repeat, each with the reason.
NOT_REPEATED = {
    "DebugLevel.__init__": "torch's is C++ and takes the value alone; an enum of Python takes what all of them take",
    "ProcessGroupGloo.monitored_barrier": "torch's default is -1 ms and ours None; both stand for the group's timeout",
    "Work.__init__": "torch's is C++ and takes nothing; in torch as here, only calls make one",
}


# Functions of C++, which have no signature that Python can read; what is recorded is their docstring's.
_BUILT_IN = {"_resolve_process_group", "get_debug_level", "set_debug_level", "set_debug_level_from_env"}

_ABSENT = object()
_IS: dict[str, Callable[[Any], bool]] = {  # what a record that is one word says of the thing
    "class": inspect.isclass,
    "exception": lambda thing: inspect.isclass(thing) and issubclass(thing, Exception),
    "method": inspect.isroutine,
    "property": inspect.isdatadescriptor,
    "value": lambda thing: not issubclass(type(thing), (type, FunctionType)),
}


@dataclass(frozen=True)
class ModuleResult:
    """How a frontend's module compares with what is recorded of its framework's.

    ``excepted`` maps what it knowingly lacks, members of classes too, to the reasons; ``absent`` are others it lacks,
    ``different`` tells what is not equal. ``members`` counts all recorded members of classes.
    """

    module: str
    recorded: int
    equal: int
    members: int
    equal_members: int
    excepted: Mapping[str, str]
    absent: tuple[str, ...]
    different: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.absent and not self.different


def compare_frontend(frontend: str) -> list[ModuleResult]:
    """Compare every module recorded of the release that *frontend* (``shim.frontends.torch``) follows."""
    signatures = read(followed_by(frontend).record)
    return [_compare_module(frontend, signatures, name) for name in signatures.modules]


def _compare_module(frontend: str, signatures: Signatures, theirs: str) -> ModuleResult:
    name = frontend + theirs.removeprefix(signatures.framework)
    records = signatures.modules[theirs]
    everything = [*records]
    for thing, record in records.items():
        if not isinstance(record, str) and f"{theirs}.{thing}" not in EXCEPTIONS:
            everything += [f"{thing}.{member}" for member in record if member != "__kind__"]
    members = sum("." in thing for thing in everything)
    reasons = {thing: EXCEPTIONS.get(f"{theirs}.{thing}") or NOT_REPEATED.get(thing) for thing in everything}
    excepted = {thing: reason for thing, reason in reasons.items() if reason is not None}
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        absent = tuple(thing for thing in records if thing not in excepted)
        return ModuleResult(name, len(records), 0, members, 0, excepted, absent, ())
    absent = tuple(thing for thing in records if thing not in excepted and not hasattr(module, thing))
    compared = dict(_compared(module, signatures, {name: records[name] for name in records if name not in excepted}))
    different = tuple(f"{thing}: {line}" for thing, lines in compared.items() for line in lines)
    unequal = {thing.partition(".")[0] for thing, lines in compared.items() if lines}
    equal = sum(thing in compared and thing not in unequal for thing in records)
    equal_members = sum("." in thing and not lines for thing, lines in compared.items())
    return ModuleResult(name, len(records), equal, members, equal_members, excepted, absent, different)


def differences_of(module: ModuleType, signatures: Signatures, records: Mapping[str, Record]) -> list[str]:
    """Tell where what *module* has of *records* differs from them, members of classes too, a line for each."""
    return [f"{name}: {line}" for name, lines in _compared(module, signatures, records) for line in lines]


def _compared(
    module: ModuleType, signatures: Signatures, records: Mapping[str, Record]
) -> Iterator[tuple[str, list[str]]]:
    """Yield what *module* has of *records*, and all recorded members of its classes, each with how it differs."""
    for name, record in records.items():
        if not hasattr(module, name):
            continue
        thing = getattr(module, name)
        if isinstance(record, str):
            yield name, _unlike(record, thing, signatures, vars(module))
        elif not inspect.isclass(thing):
            yield name, [f"recorded a class, got {thing!r}"]
        else:
            yield name, []
            names = {**vars(module), **vars(thing)}
            for member, text in record.items():
                if member != "__kind__" and f"{name}.{member}" not in NOT_REPEATED:
                    yield f"{name}.{member}", _unlike_member(text, thing, member, signatures, names)


def _unlike_member(text: str, of: type, member: str, signatures: Signatures, names: Mapping[str, Any]) -> list[str]:
    found = inspect.getattr_static(of, member, _ABSENT)
    if found is _ABSENT:
        return [f"recorded {text}, and absent"]
    if not text.startswith("("):
        return _unlike(text, found, signatures, names)
    if member == "__init__" and not inspect.isfunction(found):
        return _unlike(text, of, signatures, names)  # made by __new__, or without any argument
    function = getattr(found, "__func__", found)  # of a classmethod or staticmethod
    return _unlike(text, function, signatures, names, bound=not isinstance(found, staticmethod))


def _unlike(text: str, thing: Any, signatures: Signatures, names: Mapping[str, Any], bound: bool = False) -> list[str]:
    """Tell how *thing* differs from what *text* says. The first parameter of what is *bound* does not count."""
    if text.startswith("= "):
        return [] if _is_value(text[2:], thing, names) else [f"recorded {text[2:]}, got {thing!r}"]
    if not text.startswith("("):
        return [] if _IS[text](thing) else [f"recorded as {text}, got {thing!r}"]
    if not callable(thing):
        return [f"recorded {text}, got {thing!r}"]
    signature = inspect.signature(thing)
    if bound:
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    return differences(text, signature, vars(sys.modules[thing.__module__]), signatures.constants)


def _is_value(text: str, value: object, names: Mapping[str, Any]) -> bool:
    """Tell whether *value* is what *text* says; a name stands for what it stands for among *names*."""
    try:
        expected = _value_of(text, names)
    except NameError:
        return False
    return value is expected or (type(value) is type(expected) and value == expected)


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
        elif not _same_default(expected, parameter.default, names, constants):
            found.append(f"recorded {expected.name}={expected.default}, got {parameter.default!r}")
    return found


def _same_default(
    expected: RecordedParameter, given: object, names: Mapping[str, Any], constants: Mapping[str, str]
) -> bool:
    """Compare by value and type, so that True is not 1; a name stands for what it stands for among *names*."""
    if expected.default is None or given is inspect.Parameter.empty:
        return expected.default is None and given is inspect.Parameter.empty
    if expected.default == "...":
        return True  # of a stub, which does not say what it is
    value = _value_of(constants.get(expected.default, expected.default), names)
    if inspect.isfunction(value) and inspect.isfunction(given):
        return value is given or value.__code__.co_code == given.__code__.co_code  # lambdas
    return value is given or (type(value) is type(given) and value == given)


def _value_of(source: str, names: Mapping[str, Any]) -> object:
    try:
        return ast.literal_eval(source)
    except ValueError:
        return eval(source, {"datetime": datetime, "timedelta": datetime.timedelta, **names})


def compare_installed(file: str) -> list[str]:
    """Tell where the installed framework differs from what the file records of it, a line for each difference."""
    signatures = read(file)
    framework = importlib.import_module(signatures.framework)
    found = []
    if framework.__version__.partition("+")[0] != signatures.version:
        found.append(f"{signatures.framework} {signatures.version} is recorded, {framework.__version__} is installed")
    for name, records in signatures.modules.items():
        module = _found_at(name)
        absent = [thing for thing in records if not hasattr(module, thing)]
        if absent:
            found.append(f"{name} has no {', '.join(absent)}")
        readable = {thing: record for thing, record in records.items() if not _is_built_in(thing, record)}
        found += differences_of(module, signatures, readable)
    return found


def _found_at(name: str) -> Any:
    """Return the module called *name*, which may be known by that name only to the module above it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        above, _, last = name.rpartition(".")
        return getattr(importlib.import_module(above), last)


def _is_built_in(name: str, record: Record) -> bool:
    return name in _BUILT_IN or (not isinstance(record, str) and "__kind__" in record)


if __name__ == "__main__":
    _found = compare_installed(sys.argv[1])
    sys.stdout.write("\n".join(_found) or "as recorded")
    sys.exit(bool(_found))
