"""Reads the folder of a recording, whose ranks have a file each."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from shim.core.tracing.layout import NO_RANK, SUFFIX, VERSION, CallRecord, records
from shim.errors import ArgumentError
from shim.trace.calls import Call, Failure, Group, RankRecording, Recording, Shape, Tensors


def read_recording(folder: Path, run: int | None = None) -> Recording:
    """Return the recording in *folder*; of several runs, *run* counts from 1, and the last is meant by default.

    Raises ArgumentError for what is not there or cannot be read.
    """
    files = sorted(folder.glob(f"rank*{SUFFIX}")) if folder.is_dir() else []
    if not files:
        what = "has no recording" if folder.is_dir() else "is no folder"
        raise ArgumentError(f"{folder} {what}\n`shim trace run -n 2 --to {folder} SCRIPT` makes one.")
    ordered = _runs([_File(path) for path in files])
    number = len(ordered) if run is None else run
    if not 1 <= number <= len(ordered):
        raise ArgumentError(
            f"{folder} has {len(ordered)} run{'s' * (len(ordered) != 1)}, got run {run}\nRuns are counted from 1."
        )
    members = {one.rank.rank: one for one in sorted(ordered[number - 1], key=lambda one: one.rank.rank)}
    size = max(max(one.size for one in members.values()), max(members) + 1)
    return Recording(str(folder), size, {rank: one.rank for rank, one in members.items()}, number, len(ordered))


def read_rank(path: Path) -> RankRecording:
    """Return what the rank has recorded whose file is at *path*. Raises ArgumentError for what cannot be read."""
    return _File(path).rank


def _runs(files: list[_File]) -> list[list[_File]]:
    """Divide *files* into those of each run, in the order in which these began.

    Those of one run have the name of its world. A rank that had not learnt it belongs to a run of its job that lacks the rank.
    """
    runs: dict[str, list[_File]] = defaultdict(list)
    for one in sorted(files, key=lambda one: not one.world):
        lacking = [name for name, members in runs.items() if members[0].job == one.job and not _has(members, one)]
        nearest = min(lacking, key=lambda name: abs(runs[name][0].rank.started - one.rank.started), default=one.number)
        runs[one.world or nearest].append(one)
    return sorted(runs.values(), key=lambda members: min(one.rank.started for one in members))


def _has(members: list[_File], one: _File) -> bool:
    return any(member.rank.rank == one.rank.rank for member in members)


class _File:
    """The file of one rank."""

    def __init__(self, path: Path) -> None:
        self._definitions: list[Any] = []
        self._occurrences: Counter[str] = Counter()
        self.world = ""  # its name, where the ranks had agreed on it
        try:
            found = iter(records(path.read_bytes()))
            header = next(found, None)
            if not isinstance(header, dict) or header.get("kind") != "header":
                raise ValueError("it has no header; its process was ended while it wrote it")
            if header["version"] != VERSION:
                raise ValueError(f"it is of version {header['version']}, and this is for version {VERSION}")
            self.size = int(header["size"])
            self.rank = RankRecording(
                int(header["rank"]),
                header["host"],
                str(path),
                header["time"],
                command=header["command"],
                digest_key=header["digests"],
            )
            self._offset = int(header["clock_offset"])
            self._definitions.append(None)
            self.job = header["job"]
            self.number = path.name.partition(".")[2]  # of the run, as this rank has counted
            calls = []
            for record in found:
                if isinstance(record, CallRecord):
                    calls.append(record)
                else:
                    self._define(record, len(calls))
            self.rank.calls = [self._call(index, call) for index, call in enumerate(calls)]  # errors are defined later
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            why = error.strerror if isinstance(error, OSError) else f"{error}"
            raise ArgumentError(
                f"{path} cannot be read: {why}\nRecord it again, or remove the file to look at the other ranks."
            ) from None

    def _define(self, record: dict[str, Any], calls_before: int) -> None:
        kind = record["kind"]
        made: Any = None
        if kind == "group":
            key = record["key"]
            self._occurrences[key] += 1
            made = Group(
                record["name"],
                tuple(record["ranks"]),
                key,
                self._occurrences[key],
                record["is_world"],
                record["timeout"],
            )
            self.rank.groups.append((calls_before, made))
        elif kind == "call":
            made = self._shape(record)
        elif kind == "error":
            made = Failure(record["class"], record["text"])
        elif kind == "end":
            self.rank.has_ended = True
        elif kind == "cut":
            self.rank.is_cut = True
        elif kind == "stored":
            self.rank.stored[record["where"], b64decode(record["key"])] = b64decode(record["value"])
        elif kind == "made_up":
            self.rank.made_up.append(record["source"])
        elif kind == "world":
            self.world = self.world or record["token"]
        self._definitions.append(made)

    def _shape(self, told: dict[str, Any]) -> Shape:
        def splits(name: str) -> Any:
            given = told.get(name)
            return tuple(given) if isinstance(given, list) else given

        group = self._definitions[told["group"]]
        if not isinstance(group, Group):
            raise ValueError(f"a call is of group {told['group']}, which is none")
        return Shape(
            group,
            told["collective"],
            _tensors(told["outputs"]),
            _tensors(told["inputs"]),
            told.get("root"),
            told.get("peer"),
            str(told.get("op", "")),
            told.get("factor", 1.0),
            told.get("tag", 0),
            splits("output_splits"),
            splits("input_splits"),
            told.get("whole", False),
            told.get("before", ""),
            not told["now"],
            told["source"],
            told["function"],
            told["internal"],
            told["objects"],
            told.get("sizes", False),
        )

    def _call(self, index: int, record: CallRecord) -> Call:
        shape = self._definitions[record.definition]
        failure = self._definitions[record.error] if record.error else None
        if not isinstance(shape, Shape):
            raise ValueError(f"a call refers to definition {record.definition}, which is none of a call")
        return Call(
            self.rank.rank,
            index,
            shape,
            record.state,
            record.begin + self._offset,
            record.end + self._offset if record.end else None,
            record.waited + self._offset if record.waited else None,
            failure,
            record.input_digest,
            record.output_digest,
            None if record.source == NO_RANK else record.source,
            record.thread,
            record.in_background,
        )


def _tensors(told: dict[str, Any] | None) -> Tensors | None:
    if told is None:
        return None
    tensors = tuple((dtype, tuple(shape)) for dtype, shape in told["tensors"])
    return Tensors(
        told["list"], tensors, told["type"], told.get("unreadable", ""), told.get("device", "").partition(":")[0]
    )
