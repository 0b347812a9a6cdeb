"""Calls that cannot be carried out: one rank's arguments are wrong, or do not fit the others'. Every rank is told, nothing is written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shim.conformance.oracle import Array
from shim.conformance.soak.draw import Draw
from shim.conformance.soak.operations import ME
from shim.core import calls
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.work import Work
from shim.errors import ArgumentError, MismatchError, ShimError

_LARGE = 70_000  # elements: past the arrival lines and one slot of a ring
Mistake = Callable[
    [ProcessGroup, Array, bool, bool], Work
]  # of the group, with this tensor, by this rank or not, at once or not


def _other_shape(group: ProcessGroup, tensor: Array, is_mine: bool, now: bool) -> Work:
    part = tensor[:3] if is_mine else tensor[:4]
    return calls.all_reduce(ME, group, part, part, ReduceOp.SUM, now=now)


def _other_operation(group: ProcessGroup, tensor: Array, is_mine: bool, now: bool) -> Work:
    if is_mine:
        return calls.broadcast(ME, group, tensor, 0, now=now)
    return calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=now)


def _other_root(group: ProcessGroup, tensor: Array, is_mine: bool, now: bool) -> Work:
    return calls.broadcast(ME, group, tensor, int(is_mine), now=now)


def _wrong_argument(group: ProcessGroup, tensor: Array, is_mine: bool, now: bool) -> Work:
    output = tensor[:5] if is_mine else tensor[:4]
    return calls.all_reduce(ME, group, output, tensor[:4].copy(), ReduceOp.SUM, now=now)


MISTAKES: tuple[Mistake, ...] = (_other_shape, _other_operation, _other_root, _wrong_argument)


def make_mistakes(draw: Draw, group: ProcessGroup, now: bool) -> list[str]:
    """Let a drawn rank make a drawn mistake, once or a few times on end; return of each what is wrong with how it ended, if anything.

    In a group of one rank there is nobody to disagree with, and nothing is done.
    """
    kind, culprit, times = draw.one(MISTAKES), draw.rank(), 1 + draw.below(3)
    if group.size == 1:
        return []
    is_mine = group.rank == culprit
    expected = ArgumentError if kind is _wrong_argument and is_mine else MismatchError
    told = [_made(kind, group, is_mine, now, expected) for _ in range(times)]
    return [f"{kind.__name__[1:]} by rank {culprit}: {one}" if one else "" for one in told]


def _made(kind: Mistake, group: ProcessGroup, is_mine: bool, now: bool, expected: type[ShimError]) -> str:
    before = np.arange(_LARGE, dtype=float) * (group.rank + 2)
    tensor = before.copy()
    try:
        kind(group, tensor, is_mine, now).wait()
    except expected:
        return "" if (tensor == before).all() else "an output was written"
    except ShimError as error:
        return f"{type(error).__name__} where {expected.__name__} was expected: {error}"
    return f"nothing where {expected.__name__} was expected"
