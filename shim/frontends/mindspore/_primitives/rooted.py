"""The primitives with a rank that gives or gets everything, which they are made with: a rank in the group."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors import copy_of, memory_like
from shim.core.work import Work
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.mindspore._groups.group_names import GlobalComm
from shim.frontends.mindspore._primitives.argument_checks import integer, op_name
from shim.frontends.mindspore._primitives.cells import TuplePrimitive
from shim.frontends.mindspore._primitives.primitive import CommunicationPrimitive, Shape
from shim.frontends.mindspore._primitives.reductions import rows_for_ranks, slope_of
from shim.frontends.mindspore._reduce_ops import REDUCE_OPS, ReduceOp
from shim.frontends.mindspore._tensors import zeros

_NOTHING = (1,)  # the shape of an output that means nothing


class Broadcast(TuplePrimitive):
    """Return the tensors of rank *root_rank* of *group* on every rank: a tuple of tensors for a tuple of tensors.

    Raises: TypeError if *root_rank* is no int or *group* no str, or for a tensor that is not in a tuple.
    Deviates: where MindSpore is loaded, it is a Cell, because a Primitive's kernels take no tuples; the root's gradient is the
    sum of all ranks' and the others' is 0; MindSpore leaves each rank its own.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.Broadcast.html
    """

    caller = Caller("mindspore.ops.Broadcast", input="input_x", root="root_rank")

    root_rank: int

    def __init__(self, root_rank: int, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(group, {"root_rank": integer(self.caller, "root_rank", root_rank), "group": group})
        self.each = _BroadcastOfOne(root_rank, group)


class _BroadcastOfOne(CommunicationPrimitive):
    """What Broadcast does with each tensor."""

    caller = Caller("mindspore.ops.Broadcast", output="input_x", input="input_x", root="root_rank")

    root_rank: int

    def __init__(self, root_rank: int, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(group, {"root_rank": root_rank, "group": group})
        self.add_prim_attr("root_rank", root_rank)

    def _new_output(self, shape: Any, *tensors: Any) -> Any:
        return copy_of(tensors[0]) if self.rank_now() == self.root_rank else memory_like(tensors[0], shape)

    def output_shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        del tensors
        return calls.broadcast(self.caller, group, output, self.root_rank, True)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: the sum of all ranks' on the root, whose tensor they all got, and 0 elsewhere."""
        return _gradient_of_root(self, self.adjoint(Reduce, dest_rank=self.root_rank), self.root_rank)


def _gradient_of_root(primitive: CommunicationPrimitive, collect: Any, root: int) -> Callable[..., Any]:
    """Return the gradient that *collect* makes of all ranks' on *root*, and that is 0 elsewhere."""
    is_root, ops = primitive.rank_now() == root, sys.modules["mindspore"].ops
    depend, zeros_like = ops.Depend(), ops.ZerosLike()

    def _gradient(input_x: Any, output: Any, dout: Any) -> tuple[Any, ...]:
        collected = collect(depend(dout, output))
        return (collected if is_root else depend(zeros_like(input_x), collected),)

    return _gradient


class Reduce(CommunicationPrimitive):
    """Combine the tensors of all ranks of *group*, which have one shape, by *op* on rank *dest_rank* of it.

    The other ranks return a tensor of shape (1,) that means nothing.
    Raises: TypeError if *dest_rank* is no int, or *op* or *group* no str.
    Deviates: the gradient is right for every *op*; MindSpore's is that of "sum".
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.Reduce.html
    """

    caller = Caller("mindspore.ops.Reduce", output="input_x", input="input_x", root="dest_rank")

    dest_rank: int
    op: str

    def __init__(self, dest_rank: int, op: str = ReduceOp.SUM, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        arguments = {"dest_rank": integer(self.caller, "dest_rank", dest_rank), "op": op_name(self.caller, op)}
        self.set_up(group, {**arguments, "group": group})
        self.add_prim_attr("dest_rank", dest_rank)
        self.add_prim_attr("op", op)

    def output_shape(self, *shapes: Shape) -> Shape:
        return shapes[0] if self.rank_now() == self.dest_rank else (1,)

    def _new_output(self, shape: Any, *tensors: Any) -> Any:
        return memory_like(tensors[0], shape) if self.rank_now() == self.dest_rank else zeros(tensors[0], _NOTHING)

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        reduced = output if group.rank == self.dest_rank else None
        return calls.reduce(self.caller, group, reduced, tensors[0], REDUCE_OPS[self.op], self.dest_rank, 1.0, True)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: that of *dest_rank*, times what this rank's elements have to do with the result."""
        spread, slope = self.adjoint(_ReduceGradient, dest_rank=self.dest_rank), slope_of(self, self.op)
        depend = sys.modules["mindspore"].ops.Depend()

        def _gradient(input_x: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            return (slope(input_x, spread(input_x, depend(dout, output))),)

        return _gradient


class _GradientOfRoot(CommunicationPrimitive):
    """A collective that gives every rank a tensor like *x*, made of *dest_rank*'s *dout*, which means nothing elsewhere."""

    inputs = ("x", "dout")

    dest_rank: int

    def __init__(self, dest_rank: int, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(group, {"dest_rank": dest_rank, "group": group})
        self.add_prim_attr("dest_rank", dest_rank)

    def output_shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    def get_bprop(self) -> Callable[..., Any]:
        raise self.caller.explain(UnsupportedError("has no gradient of its own"))


class _ReduceGradient(_GradientOfRoot):
    """Return *dest_rank*'s *dout*."""

    caller = Caller("mindspore.ops.Reduce (gradient)", output="dout", input="dout", root="dest_rank")

    def _new_output(self, shape: Any, *tensors: Any) -> Any:
        return copy_of(tensors[1]) if self.rank_now() == self.dest_rank else memory_like(tensors[0], shape)

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        del tensors
        return calls.broadcast(self.caller, group, output, self.dest_rank, True)


class CollectiveGather(CommunicationPrimitive):
    """Concatenate the tensors (x_1, ..., x_R) of all ranks to (N*x_1, ..., x_R) on rank *dest_rank* of *group*.

    The other ranks return a tensor of shape (1,) that means nothing.
    Raises: TypeError if *dest_rank* is no int or *group* no str.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.CollectiveGather.html
    """

    caller = Caller("mindspore.ops.CollectiveGather", input="input_x", root="dest_rank")

    dest_rank: int

    def __init__(self, dest_rank: int, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(group, {"dest_rank": integer(self.caller, "dest_rank", dest_rank), "group": group})
        self.add_prim_attr("dest_rank", dest_rank)
        self.add_prim_attr("rank_id", self.rank)

    def output_shape(self, *shapes: Shape) -> Shape:
        if not shapes[0]:
            raise ArgumentError("{input} must have a dimension 0, got a tensor of shape ()")
        return (shapes[0][0] * self.ranks_now(), *shapes[0][1:]) if self.rank_now() == self.dest_rank else (1,)

    def _new_output(self, shape: Any, *tensors: Any) -> Any:
        return memory_like(tensors[0], shape) if self.rank_now() == self.dest_rank else zeros(tensors[0], _NOTHING)

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        gathered = output if group.rank == self.dest_rank else None
        return calls.gather(self.caller, group, gathered, tensors[0], self.dest_rank, now=True)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: this rank's rows of that of *dest_rank*."""
        scatter = self.adjoint(_GatherGradient, dest_rank=self.dest_rank)
        depend = sys.modules["mindspore"].ops.Depend()

        def _gradient(input_x: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            return (scatter(input_x, depend(dout, output)),)

        return _gradient


class _GatherGradient(_GradientOfRoot):
    """Return this rank's rows of *dest_rank*'s *dout*."""

    caller = Caller("mindspore.ops.CollectiveGather (gradient)", output="x", input="dout", root="dest_rank")

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        whole = tensors[1] if group.rank == self.dest_rank else None
        return calls.scatter(self.caller, group, output, whole, self.dest_rank, now=True)


class CollectiveScatter(CommunicationPrimitive):
    """Return this rank's rows of the tensor (N*x_1, ..., x_R) of rank *src_rank* of *group*; all ranks' have that shape.

    Raises: TypeError if *src_rank* is no int or *group* no str; ValueError if the rows cannot be divided by the ranks.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.CollectiveScatter.html
    """

    caller = Caller("mindspore.ops.CollectiveScatter", input="input_x", root="src_rank")

    src_rank: int

    def __init__(self, src_rank: int = 0, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(group, {"src_rank": integer(self.caller, "src_rank", src_rank), "group": group})
        self.add_prim_attr("src_rank", src_rank)
        self.add_prim_attr("rank_id", self.rank)

    def output_shape(self, *shapes: Shape) -> Shape:
        return rows_for_ranks(shapes[0], self.ranks_now())

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        whole = tensors[0] if group.rank == self.src_rank else None
        return calls.scatter(self.caller, group, output, whole, self.src_rank, now=True)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: all ranks', gathered, on *src_rank*, and 0 elsewhere."""
        return _gradient_of_root(self, self.adjoint(CollectiveGather, dest_rank=self.src_rank), self.src_rank)
