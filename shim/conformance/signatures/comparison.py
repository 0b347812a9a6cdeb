"""Compare signatures: the frontends' with the recorded ones, and the recorded ones with an installed framework's."""

from __future__ import annotations

import ast
import datetime
import enum
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from shim.conformance.signatures import FRONTENDS, Record, RecordedParameter, Signatures, parameters_of, read
from shim.conformance.signatures.exceptions import EXCEPTIONS, NOT_REPEATED

__all__ = ["ModuleResult", "compare_frontend", "compare_installed", "differences", "differences_of"]

# Functions of C++, which have no signature that Python can read; what is recorded is their docstring's.
_BUILT_IN = {"_resolve_process_group", "get_debug_level", "set_debug_level", "set_debug_level_from_env"}


@dataclass(frozen=True)
class ModuleResult:
    """How a frontend's module compares with what is recorded of its framework's.

    ``excepted`` maps the names it knowingly lacks to the reasons; ``absent`` are others it lacks, ``different`` tells
    what is not equal, ``methods`` counts the methods of recorded classes that are equal.
    """

    module: str
    recorded: int
    equal: int
    methods: int
    excepted: Mapping[str, str]
    absent: tuple[str, ...]
    different: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.absent and not self.different


def compare_frontend(frontend: str) -> list[ModuleResult]:
    """Compare every module recorded of the framework that *frontend* (``shim.frontends.torch``) stands for."""
    signatures = read(FRONTENDS[frontend])
    return [_compare_module(frontend, signatures, name) for name in signatures.modules]


def _compare_module(frontend: str, signatures: Signatures, theirs: str) -> ModuleResult:
    name = frontend + theirs.removeprefix(signatures.framework)
    records = signatures.modules[theirs]
    excepted = {thing: EXCEPTIONS[f"{theirs}.{thing}"] for thing in records if f"{theirs}.{thing}" in EXCEPTIONS}
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        absent = tuple(thing for thing in records if thing not in excepted)
        return ModuleResult(name, len(records), 0, 0, excepted, absent, ())
    absent = tuple(thing for thing in records if not hasattr(module, thing) and thing not in excepted)
    different = differences_of(module, signatures, records)
    unequal = {line.partition(":")[0].partition(".")[0] for line in different}
    equal = sum(hasattr(module, thing) and thing not in unequal for thing in records)
    methods = sum("." in compared for compared, _, _ in _comparable(module, records))
    return ModuleResult(name, len(records), equal, methods, excepted, absent, tuple(different))


def differences_of(module: ModuleType, signatures: Signatures, records: Mapping[str, Record]) -> list[str]:
    """Tell where *module*'s functions, constructors and methods differ from *records*, a line for each."""
    found = []
    for name, text, thing in _comparable(module, records):
        has_self = "." in name and not inspect.isclass(thing) and not isinstance(thing, staticmethod)
        thing = getattr(thing, "__func__", thing)  # of a classmethod or staticmethod
        signature = inspect.signature(thing)
        if has_self:
            signature = signature.replace(parameters=list(signature.parameters.values())[1:])
        names = vars(sys.modules[thing.__module__])
        found += [f"{name}: {line}" for line in differences(text, signature, names, signatures.constants)]
    for name, text, value, known in _constants(module, records):
        if not _is_value(text, value, known):
            found.append(f"{name}: recorded {text}, got {value!r}")
    return found


def _constants(
    module: ModuleType, records: Mapping[str, Record]
) -> Iterator[tuple[str, str, object, Mapping[str, Any]]]:
    """Yield the constants that *module* and its classes have and *records* gives values of, with where names are known."""
    for name, record in records.items():
        thing = getattr(module, name, None)
        if isinstance(record, str):
            if record.startswith("= ") and thing is not None:
                yield name, record[2:], thing, vars(module)
        elif inspect.isclass(thing):
            for member, text in record.items():
                if text.startswith("= ") and member in vars(thing):
                    yield f"{name}.{member}", text[2:], vars(thing)[member], {**vars(module), **vars(thing)}


def _is_value(text: str, value: object, names: Mapping[str, Any]) -> bool:
    """Tell whether *value* is what *text* says; a name stands for what it stands for among *names*."""
    try:
        expected = _value_of(text, names)
    except NameError:
        return False
    return value is expected or (type(value) is type(expected) and value == expected)


def _comparable(module: ModuleType, records: Mapping[str, Record]) -> Iterator[tuple[str, str, Any]]:
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
