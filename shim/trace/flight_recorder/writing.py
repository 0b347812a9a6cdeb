"""Writes a recording as dumps of torch's Flight Recorder, which ``torch.distributed.flight_recorder.fr_trace`` analyses."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from pathlib import Path
from typing import Any

from shim.core.tracing.layout import State
from shim.trace.calls import Call, RankRecording, Recording, Shape, Tensors
from shim.trace.flight_recorder.names import DTYPES, VERSION

_BACKEND = "gloo"  # fr_trace takes the names of torch's own backends only
_LINE = re.compile(r"(.*):(\d+)(?: in (.*))?$")
_STATES = {State.PREPARED: "scheduled", State.ENDED: "completed", State.FAILED: "completed"}


def write_dumps(recording: Recording, prefix: Path) -> list[Path]:
    """Write the file *prefix* + rank for each rank, and return them. Raises OSError."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    files = []
    for rank in recording.ranks.values():
        file = prefix.with_name(f"{prefix.name}{rank.rank}")
        file.write_bytes(pickle.dumps(dump_of(rank)))
        files.append(file)
    return files


def dump_of(rank: RankRecording) -> dict[str, Any]:
    """Return the dump of one rank.

    The messages between two ranks in one direction are told as calls of a group of these two, because fr_trace expects
    every rank of a group in every call.
    """
    groups: dict[str, dict[str, str]] = {}
    numbers: Counter[str] = Counter()
    entries: list[dict[str, Any]] = []
    for call in rank.calls:
        members = _members(call)
        if members is None:
            continue
        name = _group_name(call, members)
        desc = "default_pg" if call.shape.group.is_world and not call.shape.is_message else name
        groups.setdefault(name, {"name": name, "desc": desc, "ranks": str(list(members))})
        entries.append(_entry(call, len(entries), (name, desc), numbers[name], members))
        numbers[name] += 1
    return {"version": VERSION, "pg_config": groups, "pg_status": {}, "entries": entries}


def _members(call: Call) -> tuple[int, ...] | None:
    """Return the ranks that a call is told to be of; None for a message of which nobody knows who has sent it."""
    if not call.shape.is_message:
        return call.shape.group.ranks
    peer = call.shape.peer if call.source_rank is None else call.source_rank
    return tuple(sorted((call.rank, peer))) if isinstance(peer, int) else None


def _group_name(call: Call, members: tuple[int, ...]) -> str:
    group = call.shape.group
    name = group.name if group.occurrence == 1 else f"{group.name}#{group.occurrence}"
    if not call.shape.is_message:
        return name
    peer = members[0] if members[1] == call.rank else members[1]
    way = f"{call.rank}->{peer}" if call.shape.collective == "send" else f"{peer}->{call.rank}"
    return f"{name} {way}" + (f" tag {call.shape.tag}" if call.shape.tag else "")


def _entry(call: Call, number: int, group: tuple[str, str], sequence: int, members: tuple[int, ...]) -> dict[str, Any]:
    shape = call.shape
    inputs, outputs = _both(shape)
    return {
        "record_id": number,
        "pg_id": 0,
        "process_group": group,
        "collective_seq_id": sequence + 1,
        "p2p_seq_id": sequence + 1 if shape.is_message else 0,
        "op_id": number + 1,
        "profiling_name": f"{_BACKEND}:{_name(call, members)}",
        "time_created_ns": call.begin,
        "time_discovered_started_ns": call.begin,
        "time_discovered_completed_ns": call.end,
        "duration_ms": None if call.end is None else (call.end - call.begin) / 1e6,
        "input_sizes": _sizes(shape, inputs),
        "input_dtypes": _dtypes(inputs),
        "output_sizes": _sizes(shape, outputs),
        "output_dtypes": _dtypes(outputs),
        "state": _STATES.get(call.state, "started"),
        "timeout_ms": int(shape.group.timeout * 1000),
        "is_p2p": shape.is_message,
        "retired": call.end is not None,
        "frames": _frames(shape),
    }


def _name(call: Call, members: tuple[int, ...]) -> str:
    shape = call.shape
    if shape.is_message:
        me = members.index(call.rank)
        return f"send {me}->{1 - me}" if shape.collective == "send" else f"recv {me}<-{1 - me}"
    parts = (*shape.parts("inputs"), *shape.parts("outputs"))
    if shape.collective in ("all_gather", "reduce_scatter") and len(set(parts)) > 1:
        return f"{shape.collective}_v"
    return shape.collective


def _both(shape: Shape) -> tuple[Tensors | None, Tensors | None]:
    """Return the inputs and outputs as torch tells them: on every rank, where they have one size on all."""
    inputs, outputs = shape.inputs, shape.outputs
    if shape.collective in ("broadcast", "reduce"):
        given = inputs or outputs
        return given, given
    if shape.is_message:
        return (inputs or outputs), (outputs or inputs)
    return inputs, outputs


def _sizes(shape: Shape, tensors: Tensors | None) -> list[list[int]]:
    """Return the shapes; of a list that consists of the ranks' parts, the number of elements: fr_trace expects one tensor there."""
    if tensors is None or not tensors.tensors:
        return [] if shape.collective == "barrier" else [[0]]
    if len(tensors.tensors) == 1:
        return [list(tensors.tensors[0][1])]
    total = 0
    for _, one in tensors.tensors:
        count = 1
        for size in one:
            count *= size
        total += count
    return [[total]]


def _dtypes(tensors: Tensors | None) -> list[str]:
    given = dict.fromkeys(dtype for dtype, _ in tensors.tensors) if tensors else ()
    return [DTYPES.get(dtype, dtype) for dtype in given]


def _frames(shape: Shape) -> list[dict[str, Any]]:
    found = _LINE.fullmatch(shape.source)
    return [{"name": found[3] or "<module>", "filename": found[1], "line": int(found[2])}] if found else []
