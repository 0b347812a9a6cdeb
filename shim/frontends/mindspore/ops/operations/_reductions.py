"""AllReduce, AllGather and ReduceScatter, which are each other's gradients, and what all reductions' gradients share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.work import Work
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.mindspore import _groups
from shim.frontends.mindspore._arguments import REDUCE_OPS
from shim.frontends.mindspore._groups import GlobalComm
from shim.frontends.mindspore._slopes import Slope, product_of_others, slope
from shim.frontends.mindspore.ops._primitive import CommunicationPrimitive, Shape
from shim.frontends.mindspore.ops.operations._checks import op_name

__all__ = ["AllGather", "AllReduce", "GatheringPrimitive", "ReduceOp", "ReduceScatter", "rows_for_ranks", "slope_of"]

_NAMES = {kind: name for name, kind in REDUCE_OPS.items()}


class ReduceOp:
    """The strings that say how ranks' elements are combined.

    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.ReduceOp.html
    """

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    AVG = "avg"


def slope_of(primitive: CommunicationPrimitive, op: str) -> Slope:
    """Return what a rank's elements have to do with what *op* made of those of *primitive*'s group: see ``slope``."""
    return slope(
        REDUCE_OPS[op],
        primitive.ranks_now(),
        lambda kind: primitive.adjoint(AllReduce, op=_NAMES[kind]),
        lambda: primitive.adjoint(_ProductOfOthers),
    )


class _ProductOfOthers(CommunicationPrimitive):
    """Return the product of the other ranks' tensors."""

    caller = Caller("mindspore.ops (gradient of a product)", input="x")

    def __init__(self, group: str) -> None:
        self.set_up(group, {"group": group})

    def output_shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    def forward(self, *tensors: Any) -> Any:
        return product_of_others(self.caller, _groups.known_group(self.caller, self.group), tensors[0])

    def get_bprop(self) -> Callable[..., Any]:
        raise self.caller.explain(UnsupportedError("has no gradient of its own"))


class AllReduce(CommunicationPrimitive):
    """Combine the tensors of all ranks of *group*, which have one shape, by *op* into a tensor of that shape on every rank.

    Raises: TypeError if *op* or *group* is no str.
    Deviates: the gradient is right for every *op*; MindSpore's of "avg" is that of a maximum, and of "prod" nan at 0. bool is
    taken, as mint.all_reduce takes it; MindSpore raises TypeError.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.AllReduce.html
    """

    caller = Caller("mindspore.ops.AllReduce", output="input_x", input="input_x")

    op: str

    def __init__(self, op: str = ReduceOp.SUM, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(group, {"op": op_name(self.caller, op), "group": group})
        self.add_prim_attr("op", op)
        self.add_prim_attr("fusion", 0)
        self.add_prim_attr("index", 0)

    def output_shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        return calls.all_reduce(self.caller, group, output, tensors[0], REDUCE_OPS[self.op])

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: the sum of all ranks', times what this rank's elements have to do with the result."""
        total, slope = self.adjoint(AllReduce, op=ReduceOp.SUM), slope_of(self, self.op)
        depend = sys.modules["mindspore"].ops.Depend()

        def _gradient(input_x: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            return (slope(input_x, total(depend(dout, output))),)

        return _gradient


class GatheringPrimitive(CommunicationPrimitive):
    """What the forms of AllGather share: all ranks' tensors, concatenated along dimension 0."""

    def output_shape(self, *shapes: Shape) -> Shape:
        if not shapes[0]:
            raise ArgumentError("{input} must have a dimension 0, got a tensor of shape ()")
        return (shapes[0][0] * self.ranks_now(), *shapes[0][1:])

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        return calls.all_gather(self.caller, group, output, tensors[0])


class AllGather(GatheringPrimitive):
    """Concatenate the tensors (x_1, ..., x_R) of all ranks of *group* to (N*x_1, ..., x_R).

    Raises: TypeError if *group* is no str.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.AllGather.html
    """

    caller = Caller("mindspore.ops.AllGather", input="input_x")

    mean_flag: bool

    def __init__(self, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(group, {"group": group})
        self.add_prim_attr("fusion", 0)
        self.add_prim_attr("mean_flag", False)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: a reduce-scatter of the sum, divided by the number of ranks if ``mean_flag``."""
        scatter, scale, mean = self.adjoint(ReduceScatter), 1.0 / self.ranks_now(), bool(self.mean_flag)
        depend = sys.modules["mindspore"].ops.Depend()

        def _gradient(_input: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            dx = scatter(depend(dout, output))
            if mean:
                dx = dx * scale
            return (dx,)

        return _gradient


def rows_for_ranks(shape: Shape, ranks: int) -> Shape:
    """Return the shape of one of *ranks* equal parts of a tensor of *shape*."""
    if not shape or shape[0] % ranks:
        raise ArgumentError(f"{{input}} must have rows for {ranks} ranks, got shape {shape}")
    return (shape[0] // ranks, *shape[1:])


class ReduceScatter(CommunicationPrimitive):
    """Combine the tensors (N*x_1, ..., x_R) of all ranks of *group* by *op*, and keep this rank's rows of the result.

    Raises: TypeError if *op* or *group* is no str; ValueError if the rows cannot be divided by the number of ranks.
    Deviates: has a gradient for every *op*, where MindSpore has that of "sum".
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.ReduceScatter.html
    """

    caller = Caller("mindspore.ops.ReduceScatter", input="input_x")

    op: str

    def __init__(self, op: str = ReduceOp.SUM, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(group, {"op": op_name(self.caller, op), "group": group})
        self.add_prim_attr("op", op)
        self.add_prim_attr("fusion", 0)

    def output_shape(self, *shapes: Shape) -> Shape:
        return rows_for_ranks(shapes[0], self.ranks_now())

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        return calls.reduce_scatter(self.caller, group, output, tensors[0], REDUCE_OPS[self.op])

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: an all-gather, times what this rank's elements have to do with the result."""
        gather, slope = self.adjoint(AllGather), slope_of(self, self.op)
        depend = sys.modules["mindspore"].ops.Depend()

        def _gradient(input_x: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            return (slope(input_x, gather(depend(dout, output))),)

        return _gradient
