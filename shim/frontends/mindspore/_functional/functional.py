"""The collectives that leave their arguments as they are and return new tensors.

They are ``communication.comm_func``, and ``ops.communication`` where ``set_comm_ops_inplace`` asks for it. The ranks
they are given are ranks of the world.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors import framework_of
from shim.core.work import finish
from shim.errors import ArgumentError, TensorError
from shim.frontends.mindspore._arguments import (
    full_list,
    group_for,
    group_of,
    of_one_dtype,
    peer_of,
    reduce_op,
    root_of,
    splits,
    tag_of,
)
from shim.frontends.mindspore._errors import ArgumentTypeError
from shim.frontends.mindspore._gradients import differentiable
from shim.frontends.mindspore._gradients.differentiable import Shape, new, shape_of
from shim.frontends.mindspore._handles import CommHandle
from shim.frontends.mindspore._reduce_ops import REDUCE_OPS

Result = tuple[Any, CommHandle | None]

_ALL_OPS = tuple(REDUCE_OPS)


def all_reduce(
    caller: Caller, tensor: Any, op: str, group: str | None, async_op: bool, among: Sequence[str] = _ALL_OPS
) -> Result:
    """Return all ranks' *tensor*, combined by *op*, which is *among* those the function takes."""
    found = group_for(caller, group, async_op)
    kind = reduce_op(caller, found, op, among)
    (output,), handle = differentiable.all_reduce(caller, found, tensor, kind, async_op)
    return output, handle


def all_gather_into_tensor(caller: Caller, tensor: Any, group: str | None, async_op: bool) -> Result:
    """Return all ranks' *tensor*, concatenated."""
    found = group_for(caller, group, async_op)
    shape = _with_rows(caller, found, tensor)
    whole = (shape[0] * found.size, *shape[1:])
    (output,), handle = differentiable.all_gather(caller, found, tensor, [whole], None, async_op)
    return output, handle


def reduce_scatter_tensor(
    caller: Caller, tensor: Any, op: str, group: str | None, async_op: bool, among: Sequence[str] = _ALL_OPS
) -> Result:
    """Return this rank's rows of all ranks' *tensor*, combined by *op*, which is *among* those the function takes."""
    found = group_for(caller, group, async_op)
    kind = reduce_op(caller, found, op, among)
    shape = _in_equal_parts(caller, found, tensor)
    (output,), handle = differentiable.reduce_scatter(caller, found, [tensor], shape, kind, None, async_op)
    return output, handle


def all_to_all(
    caller: Caller, output_shapes: Sequence[Any], inputs: Sequence[Any], group: str | None, async_op: bool
) -> Result:
    """Return a tuple of what each rank has for this one among its *inputs*; *output_shapes* are shapes, or tensors of them."""
    found = group_for(caller, group, async_op)
    of_one_dtype(caller, found, "input", full_list(caller, found, "input", inputs))
    full_list(caller, found, "output", output_shapes)
    for tensor in inputs:
        shape_of(caller, found, tensor)
    shapes = [_shape(caller, found, shape) for shape in output_shapes]
    return differentiable.all_to_all(caller, found, inputs, shapes, None, None, async_op)


def all_to_all_single(
    caller: Caller,
    output_shape: Any,
    tensor: Any,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: str | None,
    async_op: bool,
) -> Result:
    """Return the rows that the ranks have for this one in their *tensor*; *output_shape* is a shape, or a tensor of it.

    Where nothing is received, MindSpore documents a tensor of shape () that means nothing.
    """
    found = group_for(caller, group, async_op)
    shape_of(caller, found, tensor)
    shape = _shape(caller, found, output_shape)
    received, sent = splits(output_split_sizes), splits(input_split_sizes)
    exchange = differentiable.receive_nothing if 0 in shape else differentiable.all_to_all
    (output,), handle = exchange(caller, found, [tensor], [shape], received, sent, async_op)
    return output, handle


def broadcast(caller: Caller, tensor: Any, src: int, group: str) -> Any:
    """Return *src*'s *tensor*."""
    found = group_of(caller, group)
    return differentiable.broadcast(caller, found, tensor, root_of(caller, found, src))


def reduce(caller: Caller, tensor: Any, dst: int, op: str, group: str, among: Sequence[str] = _ALL_OPS) -> Any:
    """Return all ranks' *tensor*, combined by *op*, on *dst*, and one 0 elsewhere."""
    found = group_of(caller, group)
    root = root_of(caller, found, dst)
    return differentiable.reduce(caller, found, tensor, reduce_op(caller, found, op, among), root)


def gather_into_tensor(caller: Caller, tensor: Any, dst: int, group: str) -> Any:
    """Return all ranks' *tensor*, concatenated, on *dst*, and one 0 elsewhere."""
    found = group_of(caller, group)
    root = root_of(caller, found, dst)
    _with_rows(caller, found, tensor)
    return differentiable.gather(caller, found, tensor, root)


def scatter_tensor(caller: Caller, tensor: Any, src: int, group: str) -> Any:
    """Return this rank's rows of *src*'s *tensor*; the others' says their shape."""
    found = group_of(caller, group)
    root = root_of(caller, found, src)
    return differentiable.scatter(caller, found, tensor, root, _in_equal_parts(caller, found, tensor))


def recv(caller: Caller, tensor: Any, src: int, group: str | None, tag: int) -> Any:
    """Return a tensor of *src*'s, with the shape and dtype of *tensor*."""
    output, handle = irecv(caller, tensor, src, group, tag)
    handle.wait()
    return output


def irecv(caller: Caller, tensor: Any, src: int, group: str | None, tag: int) -> tuple[Any, CommHandle]:
    """Return what will be a tensor of *src*'s, with the shape and dtype of *tensor*, and the handle to wait for."""
    found = group_of(caller, group)
    peer, number = peer_of(caller, found, src), tag_of(caller, found, tag)
    if not framework_of(type(tensor)):
        raise caller.explain(TensorError(f"tensor must be a tensor, got {type(tensor).__name__}"), found)
    output = new(caller, found, tensor, tuple(tensor.shape))
    return output, CommHandle(finish(calls.receive(caller, found, output, peer, number), True))


def _with_rows(caller: Caller, group: ProcessGroup, tensor: Any) -> Shape:
    shape = shape_of(caller, group, tensor)
    if not shape:
        calls.refuse(caller, group, ArgumentError("{input} must have a dimension 0, got a tensor of shape ()"))
    return shape


def _in_equal_parts(caller: Caller, group: ProcessGroup, tensor: Any) -> Shape:
    """Return the shape of one rank's rows of *tensor*, which must have as many for each."""
    shape = _with_rows(caller, group, tensor)
    if shape[0] % group.size:
        wanted = f"{{input}} must have rows for {group.size} ranks, got shape {shape}"
        calls.refuse(caller, group, ArgumentError(wanted))
    return (shape[0] // group.size, *shape[1:])


def _shape(caller: Caller, group: ProcessGroup, given: Any) -> Shape:
    """Return the shape that *given* is, or has."""
    shape = given if isinstance(given, (list, tuple)) else getattr(given, "shape", None)
    if shape is None or not all(isinstance(length, int) and length >= 0 for length in shape):
        wanted = f"{{output}} must be a shape, or a tensor that has it, got {given!r}"
        calls.refuse(caller, group, ArgumentTypeError(wanted))
    return tuple(shape)
