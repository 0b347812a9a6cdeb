"""Reads dumps of torch's Flight Recorder, pickles or JSON, as the recording of a job."""

from __future__ import annotations

import ast
import io
import json
import pickle
import re
from pathlib import Path
from typing import Any

from shim.core.tracing.layout import State
from shim.errors import ArgumentError
from shim.trace.calls import Call, Group, RankRecording, Recording, Shape, Tensors
from shim.trace.flight_recorder.names import COLLECTIVES, DTYPES

_FILE = re.compile(r".*?(\d+)(?:\.json|\.pkl|\.pickle)?$")
_DTYPES = {theirs: ours for ours, theirs in DTYPES.items()}
_MESSAGE = re.compile(r"(?:send (\d+)->(\d+)|recv (\d+)<-(\d+))$")
_STATES = {"scheduled": State.STARTED, "started": State.RUNNING, "completed": State.ENDED}


def is_dump_folder(path: Path) -> bool:
    """Tell whether *path* is a folder of dumps and of no recording of ours."""
    if not path.is_dir():
        return False
    files = [file for file in path.iterdir() if file.is_file()]
    return (
        bool(files)
        and all(_looks_like_dump(file) for file in files if _FILE.fullmatch(file.name))
        and any(_FILE.fullmatch(file.name) for file in files)
    )


def _looks_like_dump(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(1) in (b"\x80", b"{")
    except OSError:
        return False


def read_dumps(folder: Path) -> Recording:
    """Return the dumps in *folder*, of which each name ends with its rank, as a recording. Raises ArgumentError for what cannot be read."""
    ranks: dict[int, RankRecording] = {}
    for file in sorted(folder.iterdir()):
        found = _FILE.fullmatch(file.name)
        if found and file.is_file():
            ranks[int(found[1])] = _rank(file, int(found[1]))
    size = max([*ranks, *(member for rank in ranks.values() for _, group in rank.groups for member in group.ranks)]) + 1
    return Recording(str(folder), size, dict(sorted(ranks.items())), is_of_dumps=True)


class _PlainUnpickler(pickle.Unpickler):
    """A dump consists of built-in values: what would run code is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it refers to {module}.{name}, and a dump has plain values only")


def _rank(file: Path, rank: int) -> RankRecording:
    try:
        data = file.read_bytes()
        dump = json.loads(data) if data[:1] == b"{" else _PlainUnpickler(io.BytesIO(data)).load()
        made = RankRecording(rank, "", str(file), 0.0)
        groups = {uid: _group(uid, config) for uid, config in sorted(dump["pg_config"].items())}
        made.groups = [(0, group) for group in groups.values()]
        shapes: dict[Any, Shape] = {}
        for entry in dump["entries"]:
            shape = _shape(entry, _group_of(entry, groups))
            made.calls.append(_call(entry, rank, len(made.calls), shapes.setdefault(shape, shape)))
        return made
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        EOFError,
        AttributeError,
        pickle.UnpicklingError,
    ) as error:
        what = f"has no {error}" if isinstance(error, KeyError) else str(error)
        raise ArgumentError(
            f"{file} cannot be read as a Flight Recorder dump: {what}\n"
            "Dumps are pickles or JSON, and their names end with their ranks."
        ) from None


def _group(uid: str, config: dict[str, Any]) -> Group:
    ranks = ast.literal_eval(config["ranks"]) if isinstance(config["ranks"], str) else config["ranks"]
    is_world = config["desc"] == "default_pg" or uid == ""
    name = "world" if is_world else config["desc"] if config["desc"] not in ("", "undefined") else uid
    return Group(name, tuple(ranks), f"{uid} {config['ranks']}", 1, is_world)


def _group_of(entry: dict[str, Any], groups: dict[str, Group]) -> Group:
    """Return the group of *entry*. A dump of gloo has the default group under no name, and entries that call it "0"."""
    name, desc = entry["process_group"]
    if name in groups:
        return groups[name]
    if desc == "default_pg" and "" in groups:
        return groups[""]
    raise ValueError(f"an entry is of group {name!r}, which the dump does not describe")


def _shape(entry: dict[str, Any], group: Group) -> Shape:
    full = entry["profiling_name"].partition(":")[2]
    name = full.partition(" ")[0]
    collective = COLLECTIVES.get(name, name)
    peer = None
    if found := _MESSAGE.fullmatch(full):
        peer = sorted(group.ranks)[int(found[2] if found[2] is not None else found[4])]
    inputs = _tensors(entry.get("input_sizes", []), entry.get("input_dtypes", []))
    outputs = _tensors(entry.get("output_sizes", []), entry.get("output_dtypes", []))
    if collective == "send":
        outputs = None
    elif collective == "receive":
        inputs = None
    frame = _frame(entry.get("frames", []))
    return Shape(group, collective, outputs, inputs, peer=peer, is_async=True, source=frame, function=f"torch {name}")


def _tensors(sizes: list[list[int]], dtypes: list[str]) -> Tensors | None:
    if not sizes or (not dtypes and sizes == [[0]]):  # as on ranks that only give
        return None
    names = [_DTYPES.get(dtype, dtype.lower()) for dtype in dtypes] or ["uint8"]
    tensors = tuple((names[min(k, len(names) - 1)], tuple(size)) for k, size in enumerate(sizes))
    return Tensors(len(sizes) > 1, tensors, "torch.Tensor")


def _frame(frames: list[dict[str, Any]]) -> str:
    """Return the innermost line that is not of torch."""
    for frame in frames:
        if "/torch/" not in frame["filename"]:
            function = "" if frame["name"] == "<module>" else f" in {frame['name']}"
            return f"{frame['filename']}:{frame['line']}{function}"
    return ""


def _call(entry: dict[str, Any], rank: int, index: int, shape: Shape) -> Call:
    begin = entry.get("time_discovered_started_ns") or entry["time_created_ns"]
    end = entry.get("time_discovered_completed_ns") or None
    state = _STATES.get(entry["state"], State.STARTED)
    if entry.get("retired") or state == State.ENDED:
        state, end = State.ENDED, begin if end is None else end  # gloo tells neither times nor a state
    return Call(rank, index, shape, state, begin, end, in_background=True)
