"""AllReduce, AllGather and ReduceScatter, which are each other's gradients, and what all reductions' gradients share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors import framework_of, memory_like, tensor_of
from shim.core.work import Work
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.mindspore._arguments import refuse_tracing
from shim.frontends.mindspore._gradients.recording import belongs
from shim.frontends.mindspore._gradients.slopes import Slope, product_of_others, slope
from shim.frontends.mindspore._groups import group_names
from shim.frontends.mindspore._groups.group_names import GlobalComm
from shim.frontends.mindspore._primitives.argument_checks import op_name
from shim.frontends.mindspore._primitives.primitive import CommunicationPrimitive, Shape
from shim.frontends.mindspore._reduce_ops import REDUCE_OPS, ReduceOp

_NAMES = {kind: name for name, kind in REDUCE_OPS.items()}


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
        return product_of_others(self.caller, group_names.known_group(self.caller, self.group), tensors[0])

    def get_bprop(self) -> Callable[..., Any]:
        raise self.caller.explain(UnsupportedError("has no gradient of its own"))


_ALL_REDUCE = Caller("mindspore.ops.AllReduce", output="input_x", input="input_x")


class AllReduce(CommunicationPrimitive):
    """Combine the tensors of all ranks of *group*, which have one shape, by *op* into a tensor of that shape on every rank.

    Raises: TypeError if *op* or *group* is no str.
    Deviates: the gradient is right for every *op*; MindSpore's of "avg" is that of a maximum, and of "prod" nan at 0. It takes
    bool, as mint.all_reduce does; MindSpore raises TypeError.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.AllReduce.html
    """

    caller = _ALL_REDUCE

    op: str

    def __init__(self, op: str = ReduceOp.SUM, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(group, {"op": op_name(self.caller, op), "group": group})
        self.add_prim_attr("op", op)
        self.add_prim_attr("fusion", 0)
        self.add_prim_attr("index", 0)

    def __call__(self, *args: Any) -> Any:
        kind = framework_of(type(args[0])) if len(args) == 1 else ""
        if kind != "numpy" and (kind != "mindspore" or belongs(args[0])):
            return super().__call__(*args)
        # The general way without what its calls and the attributes of MindSpore's primitives take: more than 1 us.
        refuse_tracing(_ALL_REDUCE)
        tensor, group = args[0], group_names.known_group(_ALL_REDUCE, self.group)
        is_array = kind == "numpy"
        output = (
            sys.modules["numpy"].empty(tensor.shape, tensor.dtype) if is_array else memory_like(tensor, tensor.shape)
        )
        calls.all_reduce(_ALL_REDUCE, group, output, tensor, REDUCE_OPS[self.op], 1.0, True).wait()
        return output if is_array else tensor_of(output, tensor)

    def output_shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        return calls.all_reduce(self.caller, group, output, tensors[0], REDUCE_OPS[self.op], 1.0, True)

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
        return calls.all_gather(self.caller, group, output, tensors[0], None, True)


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
    Deviates: has the right gradient for every *op*; MindSpore's is that of "sum".
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
        return calls.reduce_scatter(self.caller, group, output, tensors[0], REDUCE_OPS[self.op], 1.0, None, True)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: an all-gather, times what this rank's elements have to do with the result."""
        gather, slope = self.adjoint(AllGather), slope_of(self, self.op)
        depend = sys.modules["mindspore"].ops.Depend()

        def _gradient(input_x: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            return (slope(input_x, gather(depend(dout, output))),)

        return _gradient
