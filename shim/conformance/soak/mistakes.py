"""Calls that cannot be carried out: one rank's arguments are wrong, or do not fit the others'. Every rank is told, nothing is written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shim.conformance.soak.draw import Draw
from shim.conformance.soak.operations import ME
from shim.core import calls
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.work import Work
from shim.errors import ArgumentError, MismatchError, ShimError

__all__ = ["MISTAKES", "Mistake", "mistake"]

Mistake = Callable[[ProcessGroup, bool, bool], tuple[Work, "np.typing.NDArray[np.float64]"]]


def _other_shape(group: ProcessGroup, is_mine: bool, now: bool) -> tuple[Work, np.typing.NDArray[np.float64]]:
    tensor = np.ones(3 + is_mine)
    return calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=now), tensor


def _other_operation(group: ProcessGroup, is_mine: bool, now: bool) -> tuple[Work, np.typing.NDArray[np.float64]]:
    tensor = np.ones(70_000)
    if is_mine:
        return calls.broadcast(ME, group, tensor, 0, now=now), tensor
    return calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=now), tensor


def _other_root(group: ProcessGroup, is_mine: bool, now: bool) -> tuple[Work, np.typing.NDArray[np.float64]]:
    tensor = np.ones(5)
    return calls.broadcast(ME, group, tensor, int(is_mine), now=now), tensor


def _wrong_argument(group: ProcessGroup, is_mine: bool, now: bool) -> tuple[Work, np.typing.NDArray[np.float64]]:
    output, tensor = np.ones(5 if is_mine else 4), np.ones(4)
    return calls.all_reduce(ME, group, output, tensor, ReduceOp.SUM, now=now), output


MISTAKES: tuple[Mistake, ...] = (_other_shape, _other_operation, _other_root, _wrong_argument)


def mistake(draw: Draw, group: ProcessGroup, now: bool) -> str:
    """Let a drawn rank make a drawn mistake, once or a few times on end; return what is wrong with how that ended, if anything."""
    kind, culprit, times = draw.one(MISTAKES), draw.rank(), 1 + draw.below(3)
    if group.size == 1:
        return ""
    is_mine = group.rank == culprit
    expected = ArgumentError if kind is _wrong_argument and is_mine else MismatchError
    for _ in range(times):
        told = _made(kind, group, is_mine, now, expected)
        if told:
            return f"{kind.__name__} by rank {culprit}: {told}"
    return ""


def _made(kind: Mistake, group: ProcessGroup, is_mine: bool, now: bool, expected: type[ShimError]) -> str:
    tensor = np.ones(0)
    try:
        work, tensor = kind(group, is_mine, now)
        work.wait()
    except expected:
        return "" if (tensor == 1).all() else "an output was written"
    except ShimError as error:
        return f"{type(error).__name__} where {expected.__name__} was expected: {error}"
    return f"nothing where {expected.__name__} was expected"
