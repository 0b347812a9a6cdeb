"""A recording as one HTML page that needs nothing besides itself: no network, no other file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from string import Template
from types import MappingProxyType
from typing import Any

from shim.trace.aligning import blocked, meetings_of
from shim.trace.calls import Call, Recording, Shape
from shim.trace.summary import summarize

MOST_CALLS = 200_000  # on a page; a browser draws so many without a pause


def as_html(recording: Recording, between_hosts: Mapping[tuple[int, int], float] = MappingProxyType({})) -> str:
    """Return the page: ``page.html`` with the styles, the program and the recording put in, and what bytes go *between_hosts*, if given."""
    page = Template(_part("page.html"))
    data = page_data(recording) | {"hosts": [[*pair, size] for pair, size in sorted(between_hosts.items())]}
    program = "\n".join(_part(name) for name in ("tables.js", "lanes.js", "page.js"))
    return page.substitute(styles=_part("page.css"), program=program, data=_embedded(data))


def page_data(recording: Recording, most: int = MOST_CALLS) -> dict[str, Any]:
    """Return what the page shows. Times are microseconds from the first call on; only the first *most* calls are drawn."""
    summary = summarize(recording)
    shapes: dict[Shape, int] = {}
    lanes: dict[int, list[list[Any]]] = {rank: [] for rank in recording.ranks}
    drawn = 0
    for number, meeting in enumerate(meetings_of(recording)):
        if drawn >= most:
            break
        for call in meeting.calls:
            waiting = meeting.waiting(call, recording.last)
            lanes[call.rank].append(
                _drawn(recording, call, waiting, shapes.setdefault(call.shape, len(shapes)), number)
            )
            drawn += 1
    users = sum(one.calls for one in summary.ranks)
    cut = f"; the first {drawn} are drawn" if drawn < len(recording.calls) else ""
    first = next(iter(recording.ranks.values()))
    return {
        "title": " ".join(first.command) or recording.path,
        "about": f"{users} calls of {len(recording.ranks)} ranks in {summary.seconds:.3f} s{cut}",
        "span": max(1.0, (recording.last - recording.first) / 1e3),
        "slowest": _verdict(summary),
        "operations": [
            {
                "operation": one.collective, "group": one.group, "calls": one.calls, "bytes": one.bytes,
                "waiting": one.waiting / 1e3, "moving": one.moving / 1e3, "slowest": one.slowest,
            }
            for one in summary.operations
        ],
        "ranks": [
            {
                "rank": one.rank, "host": recording.ranks[one.rank].host, "waiting": one.waiting / 1e3,
                "moving": one.moving / 1e3, "awaited": one.awaited / 1e3, "calls": sorted(lanes[one.rank]),
            }
            for one in summary.ranks
        ],
        "shapes": [
            {
                "call": shape.text(), "collective": shape.collective, "group": shape.group.name,
                "ranks": shape.group.ranks, "source": shape.source, "function": shape.function,
                "internal": shape.is_internal,
            }
            for shape in shapes
        ],
    }  # fmt: skip


def _drawn(recording: Recording, call: Call, waiting: int, shape: int, meeting: int) -> list[Any]:
    """Return a call as an array, because there are many: begin, duration, when the program waited and how long for others, and what it was."""
    end = recording.last if call.end is None else call.end
    since, _ = blocked(call, recording.last)
    return [
        (call.begin - recording.first) / 1e3,
        (end - call.begin) / 1e3,
        (since - recording.first) / 1e3,
        waiting / 1e3,
        shape,
        meeting,
        int(call.in_background),
        call.failure.kind if call.failure else "has not ended" if call.end is None else "",
    ]


def _verdict(summary: Any) -> str:
    slowest = summary.slowest
    waiting = sum(one.waiting for one in summary.ranks)
    if slowest is None or not slowest.awaited:
        return ""
    return f"The others waited for rank {slowest.rank} most: {slowest.awaited / waiting:.0%} of all waiting."


def _part(name: str) -> str:
    return (resources.files("shim.trace") / "page" / name).read_text(encoding="utf-8")


def _embedded(data: object) -> str:
    """Return *data* as JSON in which nothing can end a script element or begin a comment in it."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
