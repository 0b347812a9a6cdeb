"""Collectives that return new tensors, each with its gradient, which is such a collective in its turn.

Arguments are checked by the callers; the ranks are group ranks, a shape is a tuple of ints.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors import copy_of, new_like
from shim.errors import ShimError, UnsupportedError
from shim.frontends.mindspore import _tensors
from shim.frontends.mindspore._gradients.recorded_call import Backward
from shim.frontends.mindspore._gradients.recording import computed, is_recording
from shim.frontends.mindspore._gradients.slopes import product_of_others, slope
from shim.frontends.mindspore._handles import CommHandle
from shim.frontends.mindspore._tensors import Shape, zeros

__all__ = [
    "Result",
    "Shape",
    "Splits",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "gather",
    "gradient_of_all_gather",
    "gradient_of_all_reduce",
    "gradient_of_all_to_all",
    "gradient_of_reduce_scatter",
    "new",
    "receive_nothing",
    "reduce",
    "reduce_scatter",
    "scatter",
    "shape_of",
]

Result = tuple[tuple[Any, ...], CommHandle | None]
Splits = Sequence[int] | None

_LINEAR = (ReduceOp.SUM, ReduceOp.AVG)
_NOTHING: Shape = (1,)  # the shape of a result that means nothing


def all_reduce(caller: Caller, group: ProcessGroup, tensor: Any, op: ReduceOp, async_op: bool = False) -> Result:
    """Return all ranks' *tensor*, combined by *op*."""
    output = new(caller, group, tensor, shape_of(caller, group, tensor))
    call = partial(calls.all_reduce, caller, group, output, tensor, op, 1.0)
    return computed(
        caller, group, call, async_op, [output], [tensor], lambda: gradient_of_all_reduce(caller, group, tensor, op)
    )


def gradient_of_all_reduce(caller: Caller, group: ProcessGroup, tensor: Any, op: ReduceOp) -> Backward:
    """Return the gradient for *tensor*: the sum of all, times what this rank's elements have to do with the result."""
    if op in _LINEAR:  # and so its own gradient, which of an average in float16 does not overflow as a sum's may
        return lambda gradients: all_reduce(_gradient(caller), group, gradients[0], op)[0]
    slopes = _slopes_for(caller, group, [tensor], op)
    return lambda gradients: slopes(all_reduce(_gradient(caller), group, gradients[0], ReduceOp.SUM)[0])


def _slopes_for(caller: Caller, group: ProcessGroup, inputs: Sequence[Any], op: ReduceOp) -> Backward:
    """Return the function from the gradients of what *op* made of all ranks' *inputs* to those of this rank's *inputs*."""
    mine = _gradient(caller)
    if op not in _LINEAR:
        inputs = [copy_of(tensor) for tensor in inputs]  # they may be overwritten before the gradient is asked for

    def others(tensor: Any) -> Any:
        if is_recording():
            calls.refuse(mine, group, UnsupportedError("has no gradient of its own for a product"))
        return product_of_others(mine, group, tensor)

    one = slope(op, group.size, lambda kind: lambda tensor: all_reduce(mine, group, tensor, kind)[0][0], lambda: others)
    return lambda gradients: [one(tensor, gradient) for tensor, gradient in zip(inputs, gradients, strict=True)]


def all_gather(
    caller: Caller,
    group: ProcessGroup,
    tensor: Any,
    shapes: Sequence[Shape],
    splits: Splits = None,
    async_op: bool = False,
) -> Result:
    """Return all ranks' *tensor*: in one of the only shape in *shapes*, or each in its own."""
    outputs = [new(caller, group, tensor, shape) for shape in shapes]
    call = partial(calls.all_gather, caller, group, _one_or_all(outputs), tensor, splits)
    return computed(
        caller, group, call, async_op, outputs, [tensor], lambda: gradient_of_all_gather(caller, group, tensor, splits)
    )


def gradient_of_all_gather(caller: Caller, group: ProcessGroup, tensor: Any, splits: Splits = None) -> Backward:
    """Return the gradient for *tensor*: this rank's rows of the sum of all."""
    shape = shape_of(caller, group, tensor)
    return lambda gradients: reduce_scatter(_gradient(caller), group, gradients, shape, ReduceOp.SUM, splits)[0]


def reduce_scatter(
    caller: Caller,
    group: ProcessGroup,
    inputs: Sequence[Any],
    shape: Shape,
    op: ReduceOp,
    splits: Splits = None,
    async_op: bool = False,
) -> Result:
    """Return this rank's part of all ranks' *inputs*, one tensor or one for each rank, combined by *op*."""
    output = new(caller, group, inputs[0], shape)
    call = partial(calls.reduce_scatter, caller, group, output, _one_or_all(inputs), op, 1.0, splits)
    return computed(
        caller,
        group,
        call,
        async_op,
        [output],
        inputs,
        lambda: gradient_of_reduce_scatter(caller, group, inputs, op, splits),
    )


def gradient_of_reduce_scatter(
    caller: Caller, group: ProcessGroup, inputs: Sequence[Any], op: ReduceOp, splits: Splits = None
) -> Backward:
    """Return the gradient for *inputs*: all ranks', times what this rank's elements have to do with the result."""
    shapes = [shape_of(caller, group, tensor) for tensor in inputs]
    slopes = _slopes_for(caller, group, inputs, op)
    return lambda gradients: slopes(all_gather(_gradient(caller), group, gradients[0], shapes, splits)[0])


def all_to_all(
    caller: Caller,
    group: ProcessGroup,
    inputs: Sequence[Any],
    shapes: Sequence[Shape],
    output_splits: Splits = None,
    input_splits: Splits = None,
    async_op: bool = False,
) -> Result:
    """Return what all ranks have for this one in their *inputs*: in one tensor, or in one for each rank."""
    outputs = [new(caller, group, inputs[0], shape) for shape in shapes]
    into, given = _one_or_all(outputs), _one_or_all(inputs)
    call = partial(calls.all_to_all, caller, group, into, given, output_splits, input_splits)
    return computed(
        caller,
        group,
        call,
        async_op,
        outputs,
        inputs,
        lambda: gradient_of_all_to_all(caller, group, inputs, output_splits, input_splits),
    )


def receive_nothing(
    caller: Caller,
    group: ProcessGroup,
    inputs: Sequence[Any],
    shapes: Sequence[Shape],
    output_splits: Splits = None,
    input_splits: Splits = None,
    async_op: bool = False,
) -> Result:
    """Do what ``all_to_all`` does where the only one of *shapes* is empty, and return a 0 of shape ().

    It has a gradient, nothing again, for which the other ranks are waiting.
    """
    empty = new(caller, group, inputs[0], shapes[0])
    call = partial(calls.all_to_all, caller, group, empty, _one_or_all(inputs), output_splits, input_splits)
    zero = zeros(inputs[0], ())

    def _backward(_gradients: Sequence[Any]) -> Sequence[Any]:
        return gradient_of_all_to_all(caller, group, inputs, output_splits, input_splits)([empty])

    return computed(caller, group, call, async_op, [zero], inputs, lambda: _backward)


def gradient_of_all_to_all(
    caller: Caller,
    group: ProcessGroup,
    inputs: Sequence[Any],
    output_splits: Splits = None,
    input_splits: Splits = None,
) -> Backward:
    """Return the gradient for *inputs*: the same the other way round."""
    shapes = [shape_of(caller, group, tensor) for tensor in inputs]
    return lambda gradients: all_to_all(_gradient(caller), group, gradients, shapes, input_splits, output_splits)[0]


def broadcast(caller: Caller, group: ProcessGroup, tensor: Any, root: int) -> Any:
    """Return *root*'s *tensor*; the root's gradient is the sum of all ranks', the others' is 0."""
    shape = shape_of(caller, group, tensor)
    output = copy_of(tensor) if group.rank == root else new(caller, group, tensor, shape)
    call = partial(calls.broadcast, caller, group, output, root)

    def backward(gradients: Sequence[Any]) -> Sequence[Any]:
        total = reduce(_gradient(caller), group, gradients[0], ReduceOp.SUM, root)
        return [total if group.rank == root else zeros(gradients[0], shape)]

    return computed(caller, group, call, False, [output], [tensor], lambda: backward)[0][0]


def reduce(caller: Caller, group: ProcessGroup, tensor: Any, op: ReduceOp, root: int) -> Any:
    """Return all ranks' *tensor*, combined by *op*, on *root*, and one 0 elsewhere."""
    shape = shape_of(caller, group, tensor)
    output = new(caller, group, tensor, shape) if group.rank == root else zeros(tensor, _NOTHING)
    call = partial(calls.reduce, caller, group, output, tensor, op, root, 1.0)

    def gradient() -> Backward:
        slopes = _slopes_for(caller, group, [tensor], op)

        def backward(gradients: Sequence[Any]) -> Sequence[Any]:
            mine = gradients[0] if group.rank == root else new(caller, group, gradients[0], shape)
            return slopes([broadcast(_gradient(caller), group, mine, root)])

        return backward

    return computed(caller, group, call, False, [output], [tensor], gradient)[0][0]


def gather(caller: Caller, group: ProcessGroup, tensor: Any, root: int) -> Any:
    """Return all ranks' *tensor*, concatenated, on *root*, and one 0 elsewhere."""
    shape = shape_of(caller, group, tensor)
    whole = (shape[0] * group.size, *shape[1:])
    output = new(caller, group, tensor, whole) if group.rank == root else zeros(tensor, _NOTHING)
    call = partial(calls.gather, caller, group, output if group.rank == root else None, tensor, root, None)

    def backward(gradients: Sequence[Any]) -> Sequence[Any]:
        mine = gradients[0] if group.rank == root else new(caller, group, gradients[0], whole)
        return [scatter(_gradient(caller), group, mine, root, shape)]

    return computed(caller, group, call, False, [output], [tensor], lambda: backward)[0][0]


def scatter(caller: Caller, group: ProcessGroup, tensor: Any, root: int, shape: Shape) -> Any:
    """Return this rank's rows, a tensor of *shape*, of *root*'s *tensor*, which has the same shape everywhere."""
    whole = shape_of(caller, group, tensor)
    output = new(caller, group, tensor, shape)
    call = partial(calls.scatter, caller, group, output, tensor if group.rank == root else None, root, None)

    def backward(gradients: Sequence[Any]) -> Sequence[Any]:
        gathered = gather(_gradient(caller), group, gradients[0], root)
        return [gathered if group.rank == root else zeros(tensor, whole)]

    return computed(caller, group, call, False, [output], [tensor], lambda: backward)[0][0]


def new(caller: Caller, group: ProcessGroup, tensor: Any, shape: Shape) -> Any:
    """Return a new tensor like *tensor*, of *shape*; what is no tensor is refused."""
    try:
        return new_like(tensor, shape)
    except ShimError as error:
        calls.refuse(caller, group, error)


def shape_of(caller: Caller, group: ProcessGroup, tensor: Any) -> Shape:
    """Return the shape of *tensor*, from which a gradient must not be asked unless it is MindSpore's."""
    try:
        return _tensors.shape_of(tensor)
    except ShimError as error:
        calls.refuse(caller, group, error)


def _one_or_all(tensors: Sequence[Any]) -> Any:
    return tensors[0] if len(tensors) == 1 else tensors


def _gradient(caller: Caller) -> Caller:
    """Return the caller of the collectives that make up *caller*'s gradient."""
    return Caller(f"{caller.function} (gradient)")
