"""AllGather and ReduceScatter for groups that are given as lists of ranks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.work import Work
from shim.errors import ArgumentError
from shim.frontends.mindspore._groups import group_names
from shim.frontends.mindspore._primitives.argument_checks import integers, op_name
from shim.frontends.mindspore._primitives.primitive import CommunicationPrimitive, Shape
from shim.frontends.mindspore._primitives.reductions import (
    GatheringPrimitive,
    rows_for_ranks,
    slope_of,
)
from shim.frontends.mindspore._reduce_ops import REDUCE_OPS, ReduceOp

_LAST_RANK = 7


class _HostAllGather(GatheringPrimitive):
    """Concatenate the tensors (x_1, ..., x_R) of the world's ranks in *group*, at least two of 0 to 7, to (N*x_1, ..., x_R).

    Raises: TypeError if *group* is no list or tuple of int; ValueError if it is None or has other ranks.
    Deviates: needs no OpenMPI, and works in PyNative mode too. Make it after ``init``, on every rank of *group*.
    """

    caller = Caller("mindspore.ops._HostAllGather", input="input_x")

    ranks: tuple[int, ...]

    def __init__(self, group: Sequence[int] | None = None) -> None:
        ranks = _checked(self.caller, group)
        self.set_up(_name_of(self.caller, ranks), {"group": ranks})
        self.ranks = ranks
        self.add_prim_attr("group_size", len(ranks))

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: a reduce-scatter of the sum."""
        scatter, depend = self.adjoint(_HostReduceScatter, group=self.ranks), sys.modules["mindspore"].ops.Depend()

        def _gradient(_input: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            return (scatter(depend(dout, output)),)

        return _gradient


class _HostReduceScatter(CommunicationPrimitive):
    """Combine the tensors (N*x_1, ..., x_R) of the world's ranks in *group*, at least two of 0 to 7, by *op*; keep own rows.

    Raises: TypeError if *op* is no str or *group* no list or tuple of int; ValueError if *group* is None or has other ranks,
    and if the rows cannot be divided by their number.
    Deviates: needs no OpenMPI, and works in PyNative mode too. Make it after ``init``, on every rank of *group*.
    """

    caller = Caller("mindspore.ops._HostReduceScatter", input="x")
    inputs = ("x",)

    ranks: tuple[int, ...]
    op: str

    def __init__(self, op: str = ReduceOp.SUM, group: Sequence[int] | None = None) -> None:
        ranks = _checked(self.caller, group)
        self.set_up(_name_of(self.caller, ranks), {"op": op_name(self.caller, op), "group": ranks})
        self.ranks = ranks
        self.add_prim_attr("op", op)
        self.add_prim_attr("group_size", len(ranks))

    def output_shape(self, *shapes: Shape) -> Shape:
        return rows_for_ranks(shapes[0], self.ranks_now())

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        return calls.reduce_scatter(self.caller, group, output, tensors[0], REDUCE_OPS[self.op], now=True)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: an all-gather, times what this rank's elements have to do with the result."""
        gather, slope = self.adjoint(_HostAllGather, group=self.ranks), slope_of(self, self.op)
        depend = sys.modules["mindspore"].ops.Depend()

        def _gradient(x: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            return (slope(x, gather(depend(dout, output))),)

        return _gradient


def _checked(caller: Caller, group: Any) -> tuple[int, ...]:
    if group is None:
        raise caller.explain(ArgumentError("group must be a list of ranks, got None"))
    ranks = integers(caller, "group", group)
    if len(ranks) < 2 or max(ranks) > _LAST_RANK:
        raise caller.explain(ArgumentError(f"group must be at least two ranks of 0 to {_LAST_RANK}, got {list(ranks)}"))
    return ranks


def _name_of(caller: Caller, ranks: tuple[int, ...]) -> str:
    """Return the name of the group of *ranks*, which is made where the world is there and has none yet."""
    name = "host_" + "_".join(map(str, ranks))
    if group_names.is_initialized() and groups.find_group(name) is None:
        groups.new_group(caller, ranks, name=name)
    return name
