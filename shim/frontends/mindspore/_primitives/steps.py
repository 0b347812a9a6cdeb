"""The forms of AllGather that MindSpore's graph compiler uses for weights whose gradient is accumulated."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from shim.core.callers import Caller
from shim.core.tensors import copy_of
from shim.frontends.mindspore._groups.group_names import GlobalComm
from shim.frontends.mindspore._primitives.reductions import GatheringPrimitive, ReduceScatter

_NO_GROUP = ""  # with which MindSpore's compiler makes a micro-step form that does not communicate


class _MiniStepAllGather(GatheringPrimitive):
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

        def _gradient(_input: Any, z: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            dx = dout
            if mirror:
                dout = depend(dout, output)
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


class _MicroStepAllGather(GatheringPrimitive):
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

        def _gradient(_input: Any, z: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            dout = depend(dout, output)
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


def _gradient_shard() -> bool:
    """Return whether MindSpore is set to keep accumulated gradients in shards (its parallel optimizer's setting)."""
    settings = sys.modules.get("mindspore.parallel._utils")
    return bool(settings is not None and settings._get_grad_accumulation_shard())
