"""``docs/support.md``: what a user may ask of a frontend, written from the rows of ``docs/support.json``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict


class _Details(TypedDict, total=False):
    collectives: list[str]
    differs: str
    why: str
    instead: str


class Row(_Details):
    """One name of a frontend's module; ``checks.support`` says what each key is."""

    module: str
    name: str
    state: str


class Support(TypedDict):
    """All that is known of the frontends' names."""

    frontends: dict[str, str]
    engines: dict[str, list[str]]
    names: list[Row]


_PREAMBLE = """\
# What each frontend has

Find here whether a frontend has a name of its framework. A name *communicates*, is *there* without using a collective
(groups, queries, classes, constants), is *refused* (calling it raises `UnsupportedError`), or is *not there* (importing
it raises an error with the reason below). [deviations.md](deviations.md) lists what behaves differently. Modules are
listed without the `shim.frontends.` that you put in front.

`python -m checks.support` generates this page and [support.json](support.json), which has a row for each name with its
collectives. Do not edit them.
"""
_ENGINES = """\
## Engines

An engine carries out a collective with an implementation of its *own*, or by *default*: over its messages and its
agreement. Results are the same. `shim.explain()` shows which engine serves a group, and [devices.md](devices.md) and
[hosts.md](hosts.md) say which engines serve what.
"""
_WIDTH = 120


def render(data: Support) -> str:
    """Return the whole page."""
    modules: dict[str, list[Row]] = {}
    for row in data["names"]:
        modules.setdefault(row["module"], []).append(row)
    lines = [_PREAMBLE, *_counts(data)]
    for frontend, version in data["frontends"].items():
        lines += ["", f"## {version}", "", f"The frontend is `{frontend}`."]
        told: dict[str, list[Row]] = {}
        for module, rows in modules.items():
            if module == frontend or module.startswith(f"{frontend}."):
                lines += _module(module, rows, told)
                told[module] = rows
    return "\n".join([*lines, "", _ENGINES, *_engines(data["engines"]), ""])


def _counts(data: Support) -> Iterator[str]:
    """Yield a table of how many names each frontend has of each state, in whatever module."""
    yield "| frontend | stands for | communicate | there | refused | not there |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for frontend, version in data["frontends"].items():
        rows = [row for row in data["names"] if f"{row['module']}.".startswith(f"{frontend}.") and row["name"] != "*"]
        states = {row["name"]: row["state"] for row in sorted(rows, key=lambda row: _ORDER.index(row["state"]))}
        counts = [str(list(states.values()).count(state)) for state in reversed(_ORDER)]
        yield f"| `{frontend}` | {version} | {' | '.join(counts)} |"


# A name that several modules have counts once, as the last of these.
_ORDER = ("absent", "refused", "there", "communicates")


def _module(module: str, rows: Sequence[Row], told: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield a section about *module*, without what sections before it have *told*."""
    yield from ("", f"### {_short(module)}")
    new = _offered(rows)
    within = [other for other, before in told.items() if _offered(before) and _same(before, rows)]
    if within:
        most = max(within, key=lambda other: len(_offered(told[other])))
        new = [row for row in new if row["name"] not in {known["name"] for known in told[most]}]
        yield from ("", *_wrapped(f"Has every name of `{_short(most)}`."))
    for state, title in (("communicates", "Communicate"), ("there", "There")):
        names = [f"`{row['name']}`" for row in new if row["state"] == state]
        if names:
            yield from ("", *_wrapped(f"{title}: {', '.join(names)}."))
    refused = [row for row in new if row["state"] == "refused"]
    if refused:
        yield from ("", "| refused | why |", "| --- | --- |")
        yield from (f"| `{row['name']}` | {_cell(row['why'])} |" for row in refused)
    yield from _absent(rows, told)


def _offered(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["state"] != "absent"]


def _same(some: Sequence[Row], others: Sequence[Row]) -> bool:
    """Tell whether all that *some* rows offer is among *others*, and does the same there."""
    return all({**row, "module": others[0]["module"]} in others for row in _offered(some))


def _absent(rows: Sequence[Row], told: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    before = {_reason(row): module for module, others in told.items() for row in others if row["state"] == "absent"}
    groups: dict[tuple[str, str], list[str]] = {}
    elsewhere: set[str] = set()
    for row in rows:
        if row["state"] == "absent" and _reason(row) in before:
            elsewhere.add(before[_reason(row)])
        elif row["state"] == "absent":
            groups.setdefault((row["why"], row.get("instead", "")), []).append(row["name"])
    for module in sorted(elsewhere):
        yield from ("", *_wrapped(f"What `{_short(module)}` does not have is not there either."))
    if groups:
        yield from ("", "| not there | because it | instead |", "| --- | --- | --- |")
    for (why, instead), names in groups.items():
        shown = ", ".join("any other name" if name == "*" else f"`{name}`" for name in names)
        yield f"| {shown} | {_cell(why)} | {_cell(instead)} |"


def _reason(row: Row) -> tuple[str, str, str]:
    return row["name"], row["why"], row.get("instead", "")


def _engines(engines: Mapping[str, Sequence[str]]) -> Iterator[str]:
    collectives = sorted({collective for own in engines.values() for collective in own})
    yield f"| engine | {' | '.join(collectives)} |"
    yield f"| --- |{' --- |' * len(collectives)}"
    for engine, own in engines.items():
        yield f"| `{engine}` | {' | '.join('own' if each in own else 'default' for each in collectives)} |"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _short(module: str) -> str:
    return module.removeprefix("shim.frontends.")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
