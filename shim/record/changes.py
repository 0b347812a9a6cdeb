"""What changed between two records of one framework, and which callers that breaks: silently, loudly, or not at all.

A change is *silent* where a call that worked goes on working and means something else: values that land in other parameters, another
default, another value of a constant. It is *loud* where such a call raises. Everything else is *compatible*.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from shim.record import Record, RecordedParameter, Signatures, parameters_of

Breaks = Literal["silent", "loud", "compatible"]

_WAYS = {  # in which a value is given to a parameter
    inspect.Parameter.POSITIONAL_ONLY: {"position"},
    inspect.Parameter.POSITIONAL_OR_KEYWORD: {"position", "keyword"},
    inspect.Parameter.KEYWORD_ONLY: {"keyword"},
    inspect.Parameter.VAR_POSITIONAL: {"position"},
    inspect.Parameter.VAR_KEYWORD: {"keyword"},
}


@dataclass(frozen=True)
class Change:
    """One difference of ``name``, which is a function, a class's member or a constant with its module in front."""

    name: str
    breaks: Breaks
    what: str


def changes_between(old: Signatures, new: Signatures) -> list[Change]:
    """Return what changed from *old* to *new*, those that break callers silently first."""
    found = list(_changes(old.modules, new.modules))
    order = ("silent", "loud", "compatible")
    return sorted(found, key=lambda change: (order.index(change.breaks), change.name))


def _changes(old: Mapping[str, Mapping[str, Record]], new: Mapping[str, Mapping[str, Record]]) -> Iterator[Change]:
    for module in sorted({*old, *new}):
        if module not in new:
            yield Change(module, "loud", "the module is gone")
        elif module not in old:
            yield Change(module, "compatible", "a new module")
        else:
            yield from _changes_of_names(module, old[module], new[module])


def _changes_of_names(place: str, old: Mapping[str, Record], new: Mapping[str, Record]) -> Iterator[Change]:
    for name in sorted({*old, *new}):
        path = f"{place}.{name}"
        if name not in new:
            yield Change(path, "loud", "is gone")
        elif name not in old:
            yield Change(path, "compatible", "is new")
        else:
            yield from _changes_of_record(path, old[name], new[name])


def _changes_of_record(path: str, old: Record, new: Record) -> Iterator[Change]:
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        inner = [{name: text for name, text in record.items() if name != "__kind__"} for record in (old, new)]
        yield from _changes_of_names(path, inner[0], inner[1])
    elif isinstance(old, str) and isinstance(new, str) and old.startswith("(") and new.startswith("("):
        for breaks, what in changes_of_function(parameters_of(old), parameters_of(new)):
            yield Change(path, breaks, what)
    elif isinstance(old, str) and isinstance(new, str) and old.startswith("= ") and new.startswith("= "):
        yield Change(path, "silent", f"has another value: {old[2:]}, then {new[2:]}")
    else:
        yield Change(path, "loud", f"is something else: {_kind(old)}, then {_kind(new)}")


def _kind(record: Record) -> str:
    if isinstance(record, Mapping):
        return "a class"
    return (
        "a function" if record.startswith("(") else f"a {record.split(' ')[0]}" if record[:1] != "=" else "a constant"
    )


def changes_of_function(
    old: Sequence[RecordedParameter], new: Sequence[RecordedParameter]
) -> Iterator[tuple[Breaks, str]]:
    """Give what changed in the parameters of a function, each with whom it breaks."""
    before, after = ({parameter.name: parameter for parameter in side} for side in (old, new))
    renamed = dict(_renamed(old, new))
    yield from _moved(old, new, renamed)
    for was, now in renamed.items():
        yield _of_renamed(before[was], after[now], new)
    for name, parameter in before.items():
        if name in after:
            yield from _of_parameter(parameter, after[name])
        elif name in renamed:
            yield from _of_parameter(parameter, after[renamed[name]])
        else:
            yield _of_gone(parameter, new)
    for name, parameter in after.items():
        if name not in before and name not in renamed.values():
            needed = parameter.default is None and not _is_variadic(parameter)
            yield ("loud" if needed else "compatible"), f"{name} is new" + (", and has no default" if needed else "")


def _of_renamed(
    old: RecordedParameter, new: RecordedParameter, among: Sequence[RecordedParameter]
) -> tuple[Breaks, str]:
    what = f"{old.name} is now called {new.name}"
    if "keyword" not in _WAYS[old.kind]:
        return "compatible", what
    if new.default is not None and (takers := _takers(("keyword",), among)):
        return "silent", f"{what}: what calls give by keyword goes to {takers}"
    return "loud", f"{what}: calls by keyword raise"


def _of_gone(old: RecordedParameter, among: Sequence[RecordedParameter]) -> tuple[Breaks, str]:
    takers = "" if _is_variadic(old) else _takers(_WAYS[old.kind], among)
    if takers:
        return "silent", f"{old.name} is gone: what calls give it goes to {takers}"
    return "loud", f"{old.name} is gone"


def _takers(ways: Collection[str], among: Sequence[RecordedParameter]) -> str:
    """Return the variadic parameters that take whatever is given in *ways*, "" for none."""
    return " or ".join(each.name for each in among if _is_variadic(each) and not _WAYS[each.kind].isdisjoint(ways))


def _of_parameter(old: RecordedParameter, new: RecordedParameter) -> Iterator[tuple[Breaks, str]]:
    shared, lost = _WAYS[old.kind] & _WAYS[new.kind], _WAYS[old.kind] - _WAYS[new.kind]
    if _is_variadic(old) or _is_variadic(new):
        if old.kind is not new.kind:  # one value, or all that are given
            told = f"{new.name} is {new.kind.description} now, and was {old.kind.description}"
            yield ("silent" if shared else "loud"), told
        return
    if old.default is not None and new.default is None:
        yield "loud", f"{new.name} has no default any more"
    elif old.default is None and new.default is not None:
        yield "compatible", f"{new.name} has a default now, {new.default}"
    elif old.default != new.default:
        yield "silent", f"{new.name} has another default: {old.default}, then {new.default}"
    if old.kind is not new.kind:
        yield ("loud" if lost else "compatible"), f"{new.name} is {new.kind.description} now"


def _positional(parameters: Sequence[RecordedParameter]) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in kinds]


def _is_variadic(parameter: RecordedParameter) -> bool:
    return parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _renamed(old: Sequence[RecordedParameter], new: Sequence[RecordedParameter]) -> Iterator[tuple[str, str]]:
    """Give the parameters that have another name in the same place, where neither name occurs on the other side."""
    before, after = _positional(old), _positional(new)
    if len(before) == len(after) or before[: min(len(before), len(after))] != after[: min(len(before), len(after))]:
        for was, now in zip(before, after, strict=False):
            if was not in after and now not in before:
                yield was, now


def _moved(
    old: Sequence[RecordedParameter], new: Sequence[RecordedParameter], renamed: Mapping[str, str]
) -> Iterator[tuple[Breaks, str]]:
    """Give the places whose values land in another parameter than before, as one change: a swap, or a shift."""
    before = [renamed.get(name, name) for name in _positional(old)]
    after = _positional(new)
    moved = [(was, now) for was, now in zip(before, after, strict=False) if was != now]
    if moved:
        was, now = (", ".join(names) for names in zip(*moved, strict=True))
        yield "silent", f"values given by position land elsewhere: what went to {was} goes to {now}"
