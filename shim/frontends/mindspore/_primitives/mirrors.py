"""What MindSpore's graph compiler puts into graphs: the tensor as it is, and something else for its gradient.

The mirror operators reduce the gradients of data parallelism, ``_VirtualAssignAdd`` accumulates them. The gradients are
MindSpore's; where it gives a placeholder of shape (), ours has the input's shape, which PyNative mode asks for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from shim.core.callers import Caller
from shim.core.tensors import copy_of
from shim.errors import ShimError
from shim.frontends.mindspore._primitives.argument_checks import integer
from shim.frontends.mindspore._primitives.primitive import CommunicationPrimitive, Shape
from shim.frontends.mindspore._primitives.reductions import AllReduce, ReduceScatter
from shim.frontends.mindspore._tensors import shape_of


class _Identity(CommunicationPrimitive):
    """Return a copy of the first tensor."""

    inputs: ClassVar[tuple[str, ...]] = ("x",)

    def begin_alone(self, **arguments: Any) -> None:
        """Become an object made with *arguments*, which are attributes too, without a group of its own."""
        self.begin(arguments)
        for name, value in arguments.items():
            setattr(self, name, value)

    def refuse(self, error: ShimError) -> NoReturn:
        raise self.caller.explain(error)

    def forward(self, *tensors: Any) -> Any:
        try:
            shape_of(tensors[0])
        except ShimError as error:
            self.refuse(error)
        return copy_of(tensors[0])

    def output_shape(self, *shapes: Shape) -> Shape:
        return shapes[0]


class _Mirror(_Identity):
    """What the mirror operators share: the sum of all ranks' gradients, divided by *dev_num* if *mean_flag*."""

    dev_num: int | None
    mean_flag: bool | None

    def total(self) -> tuple[Any, float, bool]:
        """Return the AllReduce, what its result is multiplied by, and whether it is."""
        ranks = integer(self.caller, "dev_num", self.dev_num)
        return self.adjoint(AllReduce, op="sum", group=self.group), 1.0 / ranks, bool(self.mean_flag)


class _MirrorOperator(_Mirror):
    """Return *x*; its gradient is the sum of those of the *dev_num* ranks of *group*, or their mean if *mean_flag*.

    Raises: TypeError for a gradient without *group* or *dev_num*.
    """

    caller = Caller("mindspore.ops._MirrorOperator", input="x")

    def __init__(self, group: str | None = None, dev_num: int | None = None, mean_flag: bool | None = None) -> None:
        self.begin_alone(group=group, dev_num=dev_num, mean_flag=mean_flag)
        self.add_prim_attr("fusion", 1)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: the sum or mean of all ranks'; that of one rank is its own."""
        depend = sys.modules["mindspore"].ops.Depend()
        if self.dev_num == 1:
            return _gradient_as_it_is
        reduce, scale, mean = self.total()

        def _gradient(_x: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            dx = reduce(depend(dout, output))
            return (dx * scale if mean else dx,)

        return _gradient


def _gradient_as_it_is(_x: Any, _output: Any, dout: Any) -> tuple[Any, ...]:
    return (dout,)


class _MirrorMiniStepOperator(_Mirror):
    """Return *x*; its gradient is added to *z*, the gradient is the sum of all ranks' *z*, or their mean if *mean_flag*.

    Without the attribute ``do_mirror``, which the compiler sets, it is the gradient as it is. *grad_accumulation_step* is, as in
    MindSpore, an attribute that no computation reads.
    Raises: TypeError for a gradient without *group* or *dev_num*.
    """

    caller = Caller("mindspore.ops._MirrorMiniStepOperator", input="x")
    inputs = ("x", "z")

    do_mirror: bool

    def __init__(
        self,
        group: str | None = None,
        dev_num: int | None = None,
        mean_flag: bool | None = None,
        grad_accumulation_step: int | None = None,
    ) -> None:
        step = grad_accumulation_step
        self.begin_alone(group=group, dev_num=dev_num, mean_flag=mean_flag, grad_accumulation_step=step)
        self.add_prim_attr("fusion", 1)
        self.add_prim_attr("do_mirror", True)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient of *x*, and 0 for *z*."""
        mirror, (reduce, scale, mean) = bool(self.do_mirror), self.total()
        ops = sys.modules["mindspore"].ops
        depend, assign_add, zeros_like = ops.Depend(), ops.AssignAdd(), ops.ZerosLike()

        def _gradient(_x: Any, z: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            dx = dout
            if mirror:
                dx = reduce(depend(z, assign_add(z, depend(dout, output))))
            if mean:
                dx = dx * scale
            return (dx, zeros_like(z))

        return _gradient


class _MirrorMicroStepOperator(_Mirror):
    """Return *x*; in the backward, *z* becomes the sum of all ranks' *z*, or their mean if *mean_flag*.

    The gradients of *x* and *z* are placeholders: 1.
    Raises: TypeError for a gradient without *group* or *dev_num*.
    """

    caller = Caller("mindspore.ops._MirrorMicroStepOperator", input="x")
    inputs = ("x", "z")

    def __init__(self, group: str | None = None, dev_num: int | None = None, mean_flag: bool | None = None) -> None:
        self.begin_alone(group=group, dev_num=dev_num, mean_flag=mean_flag)
        self.add_prim_attr("fusion", 1)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the placeholders, when *z* has been assigned."""
        several, (reduce, scale, mean) = self.dev_num != 1, self.total()
        ops = sys.modules["mindspore"].ops
        depend, assign, ones_like = ops.Depend(), ops.Assign(), ops.OnesLike()

        def _gradient(x: Any, z: Any, _output: Any, dout: Any) -> tuple[Any, ...]:
            found = depend(z, dout)
            if several:
                found = reduce(found)
                if mean:
                    found = found * scale
            done = assign(z, found)
            return (depend(ones_like(x), done), depend(ones_like(z), done))

        return _gradient


class _VirtualAssignAdd(_Identity):
    """Return *x*; its gradient is added to *y*, reduced and scattered before if there is an attribute ``group``.

    The gradients of *x* and *y* are placeholders: 0.
    """

    caller = Caller("mindspore.ops._VirtualAssignAdd", input="x")
    inputs = ("x", "y")

    def __init__(self) -> None:
        self.begin_alone()

    def get_bprop(self) -> Callable[..., Any]:
        """Return the placeholders, when *y* has been added to."""
        group = self.attrs.get("group")
        scatter: Any = self.adjoint(ReduceScatter, op="sum", group=group) if group else None
        scattered, ops = bool(group), sys.modules["mindspore"].ops
        depend, assign_add, zeros_like = ops.Depend(), ops.AssignAdd(), ops.ZerosLike()
        cast, dtype_of = ops.Cast(), ops.DType()

        def _gradient(x: Any, y: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            addition = depend(dout, output)
            if scattered:
                addition = scatter(cast(addition, dtype_of(y)))
            done = assign_add(y, addition)
            return (depend(zeros_like(x), done), depend(zeros_like(y), done))

        return _gradient
