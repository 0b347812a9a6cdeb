"""Writes a recording in the Trace Event format, which ui.perfetto.dev and chrome://tracing show: a process for each rank, a lane for each thread."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shim.trace.aligning import Meeting, meetings_of
from shim.trace.calls import Call, Recording


def write_perfetto(recording: Recording, file: Path) -> None:
    """Write *recording* to *file*. Raises OSError."""
    file.write_text(json.dumps({"displayTimeUnit": "ms", "traceEvents": list(events_of(recording))}), encoding="utf-8")


def events_of(recording: Recording) -> Iterator[dict[str, Any]]:
    """Yield the events: a slice for each call and one in it for the time that the rank waited, and arrows from who came last."""
    for rank in recording.ranks.values():
        yield {
            "ph": "M",
            "name": "process_name",
            "pid": rank.rank,
            "args": {"name": f"rank {rank.rank} on {rank.host}"},
        }
        yield {"ph": "M", "name": "process_sort_index", "pid": rank.rank, "args": {"sort_index": rank.rank}}
    for number, meeting in enumerate(meetings_of(recording)):
        for call in meeting.calls:
            yield from _slices(recording, meeting, call, number)
        yield from _arrows(recording, meeting, number)


def _slices(recording: Recording, meeting: Meeting, call: Call, number: int) -> Iterator[dict[str, Any]]:
    start, end = call.begin - recording.first, (recording.last if call.end is None else call.end) - recording.first
    common = {"pid": call.rank, "tid": call.thread, "cat": call.shape.group.name}
    whole = {**common, "name": call.shape.collective, "args": _arguments(call, number)}
    if call.in_background:  # these overlap, and get lanes of their own
        identity = f"{call.rank}.{call.index}"
        yield {**whole, "ph": "b", "id": identity, "ts": start / 1e3}
        yield {**common, "name": call.shape.collective, "ph": "e", "id": identity, "ts": end / 1e3}
        if call.waited is None:
            return
        start = call.waited - recording.first
        yield {
            **common,
            "name": f"wait for {call.shape.collective}",
            "ph": "X",
            "ts": start / 1e3,
            "dur": (end - start) / 1e3,
        }
    else:
        yield {**whole, "ph": "X", "ts": start / 1e3, "dur": (end - start) / 1e3}
    waiting = meeting.waiting(call, recording.last)
    if waiting:
        yield {**common, "name": "waiting for others", "ph": "X", "ts": start / 1e3, "dur": waiting / 1e3}


def _arguments(call: Call, number: int) -> dict[str, Any]:
    told: dict[str, Any] = {
        "call": call.shape.text(),
        "group": f"{call.shape.group.name}, ranks {list(call.shape.group.ranks)}",
        "source": call.shape.source,
        "function": call.shape.function,
        "state": call.state.name.lower(),
        "bytes": call.shape.bytes,
        "meeting": number,
    }
    if call.failure is not None:
        told["error"] = f"{call.failure.kind}: {call.failure.text}"
    for name, digest in (("input digest", call.input_digest), ("output digest", call.output_digest)):
        if digest is not None:
            told[name] = f"{digest:016x}"
    return told


def _arrows(recording: Recording, meeting: Meeting, number: int) -> Iterator[dict[str, Any]]:
    """Point from the last rank to those that waited for it."""
    last = meeting.last
    for call in meeting.calls:
        if call is last or not meeting.waiting(call, recording.last):
            continue
        end = recording.last if call.end is None else call.end
        common = {"cat": "last to come", "name": "last to come", "id": f"{number}.{call.rank}"}
        yield {**common, "ph": "s", "pid": last.rank, "tid": last.thread, "ts": (last.begin - recording.first) / 1e3}
        yield {
            **common, "ph": "f", "bp": "e", "pid": call.rank, "tid": call.thread, "ts": (end - recording.first) / 1e3,
        }  # fmt: skip
