"""What a recording tells, as its readers take it: ranks, their groups, and their calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from shim._native import dtype_bytes
from shim.core.tracing.layout import State

MESSAGES = ("send", "receive")
_REFUSALS = ("ArgumentError", "RankError", "TensorError", "UnsupportedError")  # one rank alone raises them

# The tensors that consist of a part for each rank.
_PARTED = {
    "all_gather": ("outputs",),
    "gather": ("outputs",),
    "scatter": ("inputs",),
    "reduce_scatter": ("inputs",),
    "all_to_all": ("outputs", "inputs"),
}


@dataclass(frozen=True)
class Group:
    """A group of one rank. ``key`` and ``occurrence`` are the same on all its members, and no other group has them."""

    name: str
    ranks: tuple[int, ...]  # of the world
    key: str
    occurrence: int
    is_world: bool
    timeout: float = 0.0

    @property
    def identity(self) -> tuple[str, int]:
        return self.key, self.occurrence


@dataclass(frozen=True)
class Tensors:
    """The outputs or inputs of a call."""

    is_list: bool
    tensors: tuple[tuple[str, tuple[int, ...]], ...]  # dtypes and shapes
    kind: str = ""
    unreadable: str = ""  # why, for those that the engine refuses
    device: str = "cpu"  # its kind, without the number, which differs from rank to rank

    def text(self) -> str:
        if self.unreadable:
            return self.kind
        return self._sizes() + (f" on {self.device}" if self.device not in ("", "cpu") else "")

    def _sizes(self) -> str:
        shown = [f"{dtype} {list(shape)}" for dtype, shape in self.tensors]
        if not self.is_list:
            return shown[0]
        return f"{len(shown)} x {shown[0]}" if shown and len(set(shown)) == 1 else f"[{', '.join(shown)}]"


@dataclass(frozen=True)
class Shape:
    """All that is the same whenever a line of the program makes the same call. Ranks are those of the world."""

    group: Group
    collective: str
    outputs: Tensors | None = None
    inputs: Tensors | None = None
    root: Any = None
    peer: Any = None
    op: str = ""
    factor: float = 1.0
    tag: Any = 0
    output_splits: tuple[int, ...] | None = None
    input_splits: tuple[int, ...] | None = None
    whole: bool = False
    before: str = ""
    is_async: bool = False
    source: str = ""
    function: str = ""
    is_internal: bool = False
    is_of_objects: bool = False
    is_of_sizes: bool = False  # of objects

    @property
    def is_message(self) -> bool:
        return self.collective in MESSAGES

    @cached_property
    def dtype(self) -> str:
        given = [dtype for one in (self.inputs, self.outputs) if one for dtype, _ in one.tensors]
        return " and ".join(dict.fromkeys(given))

    @cached_property
    def bytes(self) -> int:
        """How many bytes this rank gives or gets, whichever is more."""
        return max(_bytes(self.inputs), _bytes(self.outputs))

    def parts(self, role: str) -> tuple[int, ...]:
        """Return the number of elements of each part of the *role* outputs or inputs; nothing where there are none."""
        given: Tensors | None = getattr(self, role)
        if given is None:
            return ()
        counts = tuple(prod(shape) for _, shape in given.tensors)
        if given.is_list or len(counts) != 1 or role not in _PARTED.get(self.collective, ()):
            return counts
        splits = self.output_splits if role == "outputs" else self.input_splits
        if splits is not None:
            row = prod(given.tensors[0][1][1:])
            return tuple(rows * row for rows in splits) if all(isinstance(rows, int) for rows in splits) else counts
        size = len(self.group.ranks)
        return (counts[0] // size,) * size if counts[0] % size == 0 else counts

    def text(self) -> str:
        """Return the call as messages show it; of one that was refused before it was a collective, the function."""
        if self.collective == "refused" and self.function:
            return self.function
        told = []
        both = self.outputs is not None and self.inputs is not None and self.outputs.text() != self.inputs.text()
        if both and self.outputs is not None and self.inputs is not None:
            told.append(f"{self.outputs.text()} <- {self.inputs.text()}")
        else:
            told += [one.text() for one in (self.inputs or self.outputs,) if one is not None]
        told += [self.op] * bool(self.op)
        told += [f"root {self.root}"] * (self.root is not None)
        if self.is_message:
            word = "to" if self.collective == "send" else "from"
            told.append(f"{word} {'any rank' if self.peer is None else f'rank {self.peer}'}")
            told += [f"tag {self.tag}"] * bool(self.tag)
        told += [repr(self.before)] * bool(self.before)
        return f"{self.collective}({', '.join(told)})"


def _bytes(tensors: Tensors | None) -> int:
    return sum(prod(shape) * dtype_bytes(dtype) for dtype, shape in tensors.tensors) if tensors else 0


@dataclass(frozen=True)
class Failure:
    """The error that ended a call."""

    kind: str
    text: str


@dataclass(frozen=True)
class Call:
    """One call of one rank. Times are nanoseconds of the clock of rank 0; ``end`` is None while the call goes on or nobody has seen its end."""

    rank: int
    index: int  # among the calls of the rank
    shape: Shape
    state: State
    begin: int
    end: int | None
    waited: int | None = None  # when the program began to wait for an asynchronous call
    failure: Failure | None = None
    input_digest: int | None = None
    output_digest: int | None = None
    source_rank: int | None = None
    thread: int = 0
    in_background: bool = False  # it was started, and perhaps waited for later

    @property
    def is_open(self) -> bool:
        """Whether the program was in this call when the recording ended."""
        return self.state in (State.RUNNING, State.WAITING)

    @property
    def is_refused(self) -> bool:
        """Whether this rank alone has refused the call, which was not carried out."""
        return self.failure is not None and self.failure.kind in _REFUSALS

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C ended this call."""
        return self.failure is not None and self.failure.kind == "KeyboardInterrupt"

    def line(self) -> str:
        """Return the call and where it was made."""
        return f"{self.shape.text()}{f', at {self.shape.source}' if self.shape.source else ''}"


@dataclass
class RankRecording:
    """What one rank has recorded. ``groups`` has the groups in the order in which they were made, each with the number of calls before it."""

    rank: int
    host: str
    path: str
    started: float  # seconds since 1970
    calls: list[Call] = field(default_factory=list)
    groups: list[tuple[int, Group]] = field(default_factory=list)
    command: Sequence[str] = ()
    digest_key: int = 0  # 0 where it has no digests
    has_ended: bool = False  # its program came to an end; it was not killed
    stored: dict[tuple[str, bytes], bytes] = field(
        default_factory=dict
    )  # what a rehearsal has stored, by store and key
    made_up: list[str] = field(default_factory=list)  # lines that have read numbers which a rehearsal has made up
    is_cut: bool = False  # its file is not as a process leaves it: the end is missing


@dataclass
class Recording:
    """One run of a job. ``ranks`` are those whose files are there, of ``size``."""

    path: str
    size: int
    ranks: dict[int, RankRecording]
    run: int = 1
    runs: int = 1
    is_of_dumps: bool = False  # torch's, which do not say how a program ended

    @property
    def calls(self) -> list[Call]:
        """All calls, rank by rank."""
        return [call for rank in self.ranks.values() for call in rank.calls]

    @cached_property
    def first(self) -> int:
        """When the first call began."""
        return min((call.begin for call in self.calls), default=0)

    @cached_property
    def last(self) -> int:
        """The last time that any rank has recorded."""
        return max((call.end or call.waited or call.begin for call in self.calls), default=0)

    @property
    def missing(self) -> list[int]:
        """The ranks whose files are not there."""
        return [rank for rank in range(self.size) if rank not in self.ranks]
