"""Recordings made by hand, for what reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shim.core.tracing.layout import State
from shim.trace.calls import Call, Failure, Group, RankRecording, Recording, Shape, Tensors

WORLD = Group("world", (0, 1), "key", 1, True, 30.0)


def tensors(*shapes: tuple[int, ...], dtype: str = "float32", is_list: bool = False) -> Tensors:
    return Tensors(is_list, tuple((dtype, shape) for shape in shapes), "numpy.ndarray")


def all_reduce(**changes: Any) -> Shape:
    given = tensors((2, 3))
    shape = Shape(WORLD, "all_reduce", given, given, op="SUM", source="/a/train.py:7 in step")
    return replace(shape, **changes)


def call(rank: int, shape: Shape, begin: int, end: int | None, **more: Any) -> Call:
    state = State.RUNNING if end is None else State.FAILED if "failure" in more else State.ENDED
    return Call(rank, 0, shape, more.pop("state", state), begin, end, **more)


def recording(*calls: Call, size: int = 2, **more: Any) -> Recording:
    """Return the recording of these calls, each rank's in the order given."""
    ranks = {rank: RankRecording(rank, "host", f"rank{rank}", 0.0, has_ended=True) for rank in range(size)}
    for one in calls:
        mine = ranks[one.rank]
        mine.calls.append(replace(one, index=len(mine.calls)))
        if one.shape.group not in [group for _, group in mine.groups]:
            mine.groups.append((0, one.shape.group))
    return Recording("made up", size, ranks, **more)


def failure(kind: str = "MismatchError") -> Failure:
    return Failure(kind, "the ranks disagree")
