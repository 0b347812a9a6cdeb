"""What each rank has to do in a replay, in the order of its recording, and with which made-up tensors: zeros, in memory that all calls of a rank share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate
from math import prod
from typing import Any, Literal

import numpy as np

from shim._native import dtype_bytes
from shim.core.collectives import COLLECTIVES
from shim.core.tracing.layout import State
from shim.errors import TensorError, UnsupportedError
from shim.trace.calls import Call, Group, RankRecording, Shape, Tensors

_KNOWN = {*(row.name for row in COLLECTIVES), "refused"}
_NOT_MADE = ("StateError", "NotMemberError")


@dataclass(frozen=True)
class Step:
    """One step of a rank: *what* it does, and at which time of the recording; ``ended`` is when it went on, 0 where that is not known."""

    what: Literal["group", "call", "start", "wait", "refuse"]
    time: int
    ended: int
    call: Call | None = None
    group: Group | None = None


def steps_of(rank: RankRecording, size: int) -> list[Step]:
    """Return the steps of *rank* in a replay on the first *size* ranks; messages to and from the others are left out."""
    steps: list[Step] = []
    groups = list(rank.groups)
    for call in rank.calls:
        while groups and groups[0][0] <= call.index:
            steps.append(Step("group", 0, 0, group=groups.pop(0)[1]))
        if not _is_token(call) and _is_kept(call, size):
            steps += _steps_of(call)
    steps += [Step("group", 0, 0, group=group) for _, group in groups]
    return _in_order(steps)


def cut_group(ranks: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return those of *ranks* that a replay on *size* ranks has."""
    return tuple(rank for rank in ranks if rank < size)


def _is_token(call: Call) -> bool:
    """Tell whether the ranks agreed with *call* on a name for the world, as those of the replay do when they begin."""
    shape = call.shape
    return shape.is_internal and shape.collective == "broadcast" and shape.group.is_world and shape.dtype == "uint8"


def _is_kept(call: Call, size: int) -> bool:
    shape = call.shape
    if call.state == State.PREPARED or (call.failure is not None and call.failure.kind in _NOT_MADE):
        return False
    if not shape.is_message:
        return shape.collective in _KNOWN  # dumps of torch have others, such as the ends of coalesced calls
    peer = call.source_rank if shape.peer is None else shape.peer
    return not call.is_refused and (peer is None or peer < size)  # of a refused one nobody else knows


def _steps_of(call: Call) -> Iterator[Step]:
    if call.is_refused:
        yield Step("refuse", call.begin, call.end or 0, call)
    elif not call.in_background:
        yield Step("call", call.begin, call.end or 0, call)
    else:
        yield Step("start", call.begin, call.begin, call)
        if call.waited is not None:
            yield Step("wait", call.waited, call.end or 0, call)


def _in_order(steps: list[Step]) -> list[Step]:
    """Put the steps in the order of their times; a group is made where it stands in the file."""
    ordered: list[Step] = []
    since_group: list[Step] = []
    for step in steps:
        if step.what == "group":
            ordered += sorted(since_group, key=lambda one: one.time)
            ordered.append(step)
            since_group = []
        else:
            since_group.append(step)
    return ordered + sorted(since_group, key=lambda one: one.time)


class MadeUp:
    """Gives the tensors of recorded calls, for a replay on the first *size* ranks. Values are of no interest, so all calls use the same memory."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._memory = {"outputs": np.zeros(0, np.uint8), "inputs": np.zeros(0, np.uint8)}

    def tensors(self, shape: Shape, role: str) -> Any:
        """Return what the call gets as its *role*, outputs or inputs: of the form that was recorded, or without the parts of absent ranks."""
        given: Tensors | None = getattr(shape, role)
        if given is None:
            return None
        if given.unreadable:
            raise TensorError(given.unreadable)
        ranks, parts = shape.group.ranks, shape.parts(role)
        kept = cut_group(ranks, self._size)
        if len(kept) == len(ranks) or len(parts) != len(ranks) or (len(parts) == 1 and not given.is_list):
            made = self._views(role, given.tensors)
            return made if given.is_list else made[0]
        dtype = given.tensors[0][0]
        return self._views(role, tuple((dtype, (parts[ranks.index(rank)],)) for rank in kept))

    def _views(self, role: str, tensors: tuple[tuple[str, tuple[int, ...]], ...]) -> list[Any]:
        sizes = [prod(shape) * dtype_bytes(dtype) for dtype, shape in tensors]
        ends = list(accumulate(-(-size // 64) * 64 for size in sizes))
        if ends and ends[-1] > len(self._memory[role]):
            self._memory[role] = np.zeros(ends[-1], np.uint8)
        memory = self._memory[role]
        starts = [0, *ends[:-1]]
        return [
            memory[start : start + size].view(_dtype(dtype)).reshape(shape)
            for start, size, (dtype, shape) in zip(starts, sizes, tensors, strict=False)
        ]


def _dtype(name: str) -> Any:
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        return np.dtype(getattr(import_module("ml_dtypes"), name))
    except (ImportError, AttributeError):
        raise UnsupportedError(
            f"there is no made-up tensor of dtype {name} without ml_dtypes\nInstall ml_dtypes: python3 -m pip install ml_dtypes"
        ) from None
