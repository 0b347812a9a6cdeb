"""``mindspore.ops.operations.comm_ops``: the communication primitives.

Every gradient here is MindSpore's own (2.10: ``ops/_grad_experimental/grad_comm_ops.py``); ``_gradient`` functions are
read by its compiler, so they call primitives and know the attributes' values from outside. Ranks that a primitive is
made with are ranks in its group.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors import copy_of, framework_of, new_like
from shim.core.work import Work
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.mindspore._arguments import REDUCE_OPS
from shim.frontends.mindspore._errors import ArgumentTypeError
from shim.frontends.mindspore._groups import GlobalComm
from shim.frontends.mindspore.ops._primitive import CommunicationPrimitive, Shape, TuplePrimitive

__all__ = ["AllGather", "Broadcast", "CollectiveGather", "ReduceOp", "ReduceScatter"]

_NO_GROUP = ""  # with which MindSpore's compiler makes a micro-step form that does not communicate


class ReduceOp:
    """The strings that say how ranks' elements are combined.

    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.ReduceOp.html
    """

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    AVG = "avg"


class _Gathering(CommunicationPrimitive):
    """What the three forms of AllGather share: all ranks' tensors, concatenated along dimension 0."""

    def output_shape(self, *shapes: Shape) -> Shape:
        if not shapes[0]:
            raise ArgumentError("{input} must have a dimension 0, got a tensor of shape ()")
        return (shapes[0][0] * self.ranks_now(), *shapes[0][1:])

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        return calls.all_gather(self.caller, group, output, tensors[0])


class AllGather(_Gathering):
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

        def _gradient(_input: Any, _output: Any, dout: Any) -> tuple[Any, ...]:
            dx = scatter(dout)
            if mean:
                dx = dx * scale
            return (dx,)

        return _gradient


class ReduceScatter(CommunicationPrimitive):
    """Combine the tensors (N*x_1, ..., x_R) of all ranks of *group* by *op*, and keep this rank's rows of the result.

    Raises: TypeError if *op* or *group* is no str; ValueError if the rows cannot be divided by the number of ranks.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.ReduceScatter.html
    """

    caller = Caller("mindspore.ops.ReduceScatter", input="input_x")

    op: str

    def __init__(self, op: str = ReduceOp.SUM, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        if not isinstance(op, str) or op not in REDUCE_OPS:
            raise self.caller.explain(ArgumentTypeError(f"op must be one of {', '.join(REDUCE_OPS)}, got {op!r}"))
        self.set_up(group, {"op": op, "group": group})
        self.add_prim_attr("op", op)
        self.add_prim_attr("fusion", 0)

    def output_shape(self, *shapes: Shape) -> Shape:
        if not shapes[0] or shapes[0][0] % self.ranks_now():
            raise ArgumentError(f"{{input}} must have rows for {self.ranks_now()} ranks, got shape {shapes[0]}")
        return (shapes[0][0] // self.ranks_now(), *shapes[0][1:])

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        return calls.reduce_scatter(self.caller, group, output, tensors[0], REDUCE_OPS[self.op])

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: an all-gather. Only that of the sum is defined."""
        if self.op != ReduceOp.SUM:
            raise self.caller.explain(UnsupportedError(f"has a gradient only for op 'sum', got {self.op!r}"))
        gather = self.adjoint(AllGather)

        def _gradient(_input: Any, _output: Any, dout: Any) -> tuple[Any, ...]:
            return (gather(dout),)

        return _gradient


class _MiniStepAllGather(_Gathering):
    """Concatenate like AllGather; its gradient goes through *z*, which accumulates those of the mini-steps.

    MindSpore's graph compiler sets the attributes that choose the gradient. Without one they are what the documentation
    describes, a reduce-scatter in the backward of every mini-step: ``do_mirror`` True. ``add_accu`` is False as in
    MindSpore, ``gradient_shard`` is MindSpore's setting where that is loaded. *grad_accumulation_step* is, as in MindSpore, an
    attribute that no computation reads.
    """

    caller = Caller("mindspore.ops._MiniStepAllGather", input="x")
    inputs = ("x", "z")

    mean_flag: bool | None
    do_mirror: bool
    add_accu: bool
    gradient_shard: bool

    def __init__(
        self,
        group: str = GlobalComm.WORLD_COMM_GROUP,
        grad_accumulation_step: int | None = None,
        mean_flag: bool | None = None,
    ) -> None:
        self.set_up(group, {"group": group, "grad_accumulation_step": grad_accumulation_step, "mean_flag": mean_flag})
        self.add_prim_attr("fusion", 1)
        self.grad_accumulation_step = grad_accumulation_step
        self.mean_flag = mean_flag
        self.add_prim_attr("do_mirror", True)
        self.add_prim_attr("add_accu", False)
        self.add_prim_attr("gradient_shard", _gradient_shard())

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: that of the accumulated sum, reduced and scattered; the gradient itself without mirror.

        MindSpore all-reduces and keeps this rank's rows, which is a reduce-scatter that sends more.
        """
        scatter, scale, mean = self.adjoint(ReduceScatter), 1.0 / self.ranks_now(), bool(self.mean_flag)
        mirror, sharded, accumulate = bool(self.do_mirror), bool(self.gradient_shard), bool(self.add_accu)
        ops = sys.modules["mindspore"].ops
        depend, assign_add, zeros_like = ops.Depend(), ops.AssignAdd(), ops.ZerosLike()

        def _gradient(_input: Any, z: Any, _output: Any, dout: Any) -> tuple[Any, ...]:
            dx = dout
            if mirror:
                if sharded:
                    dx = scatter(dout)
                else:
                    dx = scatter(depend(z, assign_add(z, dout)))
                if mean:
                    dx = dx * scale
                if sharded and accumulate:
                    dx = depend(dx, assign_add(z, dx))
            return (dx, zeros_like(z))

        return _gradient


class _MicroStepAllGather(_Gathering):
    """Concatenate like AllGather; *z* is the gradient that earlier micro-steps have accumulated.

    MindSpore's graph compiler sets the attributes that choose the gradient. Without one they are what the documentation
    describes, a reduce-scatter of the gradient in every backward: ``do_mirror`` and ``with_mirror_operator`` are True.
    (Without the latter the gradient is that of *z* alone, into which only the compiler's other operators would add this one.)
    """

    caller = Caller("mindspore.ops._MicroStepAllGather", input="x")
    inputs = ("x", "z")

    mean_flag: bool | None
    do_mirror: bool
    with_mirror_operator: bool

    def __init__(self, group: str = GlobalComm.WORLD_COMM_GROUP, mean_flag: bool | None = None) -> None:
        self.set_up(group, {"group": group, "mean_flag": mean_flag})
        self.add_prim_attr("fusion", 1)
        self.mean_flag = mean_flag
        self.add_prim_attr("do_mirror", group != _NO_GROUP)
        self.add_prim_attr("with_mirror_operator", True)

    def rank_now(self) -> int:
        return 0 if self.group == _NO_GROUP else super().rank_now()

    def ranks_now(self) -> int:
        return 1 if self.group == _NO_GROUP else super().ranks_now()

    def forward(self, *tensors: Any) -> Any:
        return copy_of(tensors[0]) if self.group == _NO_GROUP else super().forward(*tensors)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: the reduce-scatter of this one, or of *z*; without mirror either of them as it is.

        MindSpore's gradient of *z* is a placeholder, the number 1; PyNative mode asks for it in the shape of *z*.
        """
        mirror, from_gradient, mean = bool(self.do_mirror), bool(self.with_mirror_operator), bool(self.mean_flag)
        scatter: Any = self.adjoint(ReduceScatter) if mirror else None
        scale = 1.0 / self.ranks_now()
        ops = sys.modules["mindspore"].ops
        depend, cast, dtype_of, ones_like = ops.Depend(), ops.Cast(), ops.DType(), ops.OnesLike()

        def _gradient(_input: Any, z: Any, _output: Any, dout: Any) -> tuple[Any, ...]:
            if from_gradient:
                dx = dout
            else:
                dx = depend(z, dout)
            if mirror:
                dx = scatter(cast(dx, dtype_of(z)))
                if mean:
                    dx = dx * scale
            return (dx, ones_like(z))

        return _gradient


class Broadcast(TuplePrimitive):
    """Return the tensors of rank *root_rank* of *group* on every rank: a tuple of tensors for a tuple of tensors.

    Raises: TypeError if *root_rank* is no int or *group* no str, or for a tensor that is not in a tuple.
    Deviates: where MindSpore is loaded, it is a Cell and no Primitive, whose kernels take no tuples.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.Broadcast.html
    """

    caller = Caller("mindspore.ops.Broadcast", input="input_x")

    def __init__(self, root_rank: int, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(_BroadcastOfOne(root_rank, group), {"root_rank": root_rank, "group": group})


class _BroadcastOfOne(CommunicationPrimitive):
    """What Broadcast does with each tensor."""

    caller = Caller("mindspore.ops.Broadcast", output="input_x", input="input_x", root="root_rank")

    root_rank: int

    def __init__(self, root_rank: int, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        _check_rank(self.caller, "root_rank", root_rank)
        self.set_up(group, {"root_rank": root_rank, "group": group})
        self.add_prim_attr("root_rank", root_rank)

    def _new_output(self, tensor: Any, shape: Shape) -> Any:
        del shape
        return copy_of(tensor)

    def output_shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        del tensors
        return calls.broadcast(self.caller, group, output, self.root_rank)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: on every rank its own, as it is. (Mathematically the root's would be the sum of all.)"""

        def _gradient(_input: Any, _output: Any, dout: Any) -> tuple[Any, ...]:
            return (dout,)

        return _gradient


class CollectiveGather(CommunicationPrimitive):
    """Concatenate the tensors (x_1, ..., x_R) of all ranks to (N*x_1, ..., x_R) on rank *dest_rank* of *group*.

    The other ranks return a tensor of shape (1,) that means nothing.
    Raises: TypeError if *dest_rank* is no int or *group* no str.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.CollectiveGather.html
    """

    caller = Caller("mindspore.ops.CollectiveGather", input="input_x", root="dest_rank")

    dest_rank: int

    def __init__(self, dest_rank: int, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        _check_rank(self.caller, "dest_rank", dest_rank)
        self.set_up(group, {"dest_rank": dest_rank, "group": group})
        self.add_prim_attr("dest_rank", dest_rank)
        self.add_prim_attr("rank_id", self.rank)

    def output_shape(self, *shapes: Shape) -> Shape:
        if not shapes[0]:
            raise ArgumentError("{input} must have a dimension 0, got a tensor of shape ()")
        return (shapes[0][0] * self.ranks_now(), *shapes[0][1:]) if self.rank_now() == self.dest_rank else (1,)

    def _new_output(self, tensor: Any, shape: Shape) -> Any:
        return super()._new_output(tensor, shape) if self.rank_now() == self.dest_rank else _zero_like(tensor)

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        gathered = output if group.rank == self.dest_rank else None
        return calls.gather(self.caller, group, gathered, tensors[0], self.dest_rank)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: this rank's rows of that of *dest_rank*."""
        scatter = self.adjoint(_GatherGradient, dest_rank=self.dest_rank)

        def _gradient(input_x: Any, _output: Any, dout: Any) -> tuple[Any, ...]:
            return (scatter(input_x, dout),)

        return _gradient


class _GatherGradient(CommunicationPrimitive):
    """Return this rank's rows of *dest_rank*'s *dout*, in the shape of *x*; *dout* means nothing on other ranks."""

    caller = Caller("mindspore.ops.CollectiveGather (gradient)", output="x", input="dout", root="dest_rank")
    inputs = ("x", "dout")

    dest_rank: int

    def __init__(self, dest_rank: int, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(group, {"dest_rank": dest_rank, "group": group})
        self.add_prim_attr("dest_rank", dest_rank)

    def output_shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        whole = tensors[1] if group.rank == self.dest_rank else None
        return calls.scatter(self.caller, group, output, whole, self.dest_rank)

    def get_bprop(self) -> Callable[..., Any]:
        raise self.caller.explain(UnsupportedError("has no gradient of its own"))


def _zero_like(tensor: Any) -> Any:
    """Return a tensor of *tensor*'s kind and dtype that holds one 0: what MindSpore's example prints for nothing."""
    if framework_of(type(tensor)) == "mindspore":
        return sys.modules["mindspore"].Tensor([0], dtype=tensor.dtype)  # assigning cannot be done in its bfloat16
    zero = new_like(tensor, (1,))
    zero[0] = 0
    return zero


def _check_rank(caller: Caller, parameter: str, rank: object) -> None:
    if not isinstance(rank, int) or isinstance(rank, bool):
        raise caller.explain(ArgumentTypeError(f"{parameter} must be an int, got {type(rank).__name__}"))


def _gradient_shard() -> bool:
    """Return whether MindSpore is set to keep accumulated gradients in shards (its parallel optimizer's setting)."""
    settings = sys.modules.get("mindspore.parallel._utils")
    return bool(settings is not None and settings._get_grad_accumulation_shard())
