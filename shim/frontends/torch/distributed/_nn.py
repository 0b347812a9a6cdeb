"""What the functions of ``torch.distributed.nn.functional`` do; *group* is a group of the frontend, None the world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shim.core.callers import Caller
from shim.errors import ArgumentError, MismatchError, UnsupportedError
from shim.frontends.torch.distributed import _differentiable
from shim.frontends.torch.distributed._arguments import root_of, splits_of
from shim.frontends.torch.distributed._differentiable import begin, is_torch
from shim.frontends.torch.distributed._functional_calls import Call
from shim.frontends.torch.distributed._groups import group_of
from shim.frontends.torch.distributed._headers import Header, all_headers, header_from
from shim.frontends.torch.distributed._reduce_op import reduction_of

__all__ = [
    "all_gather",
    "all_gather_base",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def broadcast(caller: Caller, tensor: Any, src: int, group: Any) -> Any:
    call = begin(caller, group_of(caller, group), [tensor])
    return _differentiable.broadcast(call, tensor, root_of(caller, call.group, src, None))


def all_reduce(caller: Caller, tensor: Any, op: Any, group: Any) -> Any:
    call = begin(caller, group_of(caller, group), [tensor])
    kind, factor = reduction_of(caller, group, op, tensor)
    return _differentiable.all_reduce(call, tensor, kind, factor)


def reduce(caller: Caller, tensor: Any, dst: int, op: Any, group: Any) -> Any:
    call = begin(caller, group_of(caller, group), [tensor])
    kind, factor = reduction_of(caller, group, op, tensor)
    root = root_of(caller, call.group, dst, None)
    return _differentiable.reduce(call, tensor, kind, factor, root)


def all_gather(caller: Caller, tensor: Any, group: Any) -> tuple[Any, ...]:
    call = begin(caller, group_of(caller, group), [tensor])
    headers = all_headers(call, tensor)
    taken = _with_the_others(tensor, headers)
    return tuple(_differentiable.all_gather_parts(call, taken, [header.shape for header in headers]))


def all_gather_base(caller: Caller, output: Any, tensor: Any, group: Any) -> Any:
    call = begin(caller, group_of(caller, group), [tensor])
    call.check_tensors([output], "output")
    return _differentiable.all_gather(call, tensor, output)


def gather(caller: Caller, tensor: Any, dst: int, group: Any) -> tuple[Any, ...]:
    call = begin(caller, group_of(caller, group), [tensor])
    root = root_of(caller, call.group, dst, None)
    headers = all_headers(call, tensor)
    taken = _with_the_others(tensor, headers)
    return tuple(_differentiable.gather(call, taken, [header.shape for header in headers], root))


def scatter(caller: Caller, tensors: Any, src: int, group: Any) -> Any:
    members = group_of(caller, group)
    root = root_of(caller, members, src, None)
    if tensors is None and members.rank != root:
        call = begin(caller, members, [])
        header = header_from(call, None, root)
        return _differentiable.scatter(call, [_placeholder(call, header)], header.shape, root)
    parts = _list_of(Call(caller, members), "input", tensors)
    call = begin(caller, members, parts)
    header = header_from(call, parts, root)
    if members.rank != root:
        if tuple(parts[members.rank].shape) != header.shape:
            call.refuse(
                MismatchError(
                    f"{{input}} must be None or like the root's, which sends shape {header.shape}, "
                    f"got shape {tuple(parts[members.rank].shape)}"
                )
            )
        parts = [_attached(part, header.wants_gradient) for part in parts]
    return _differentiable.scatter(call, parts, header.shape, root)


def reduce_scatter(caller: Caller, output: Any, tensors: Any, op: Any, group: Any) -> Any:
    members = group_of(caller, group)
    parts = _list_of(Call(caller, members), "input", tensors)
    call = begin(caller, members, parts)
    call.check_tensors([output], "output")
    kind, factor = reduction_of(caller, group, op, output)
    return _differentiable.reduce_scatter_parts(call, parts, kind, factor, output)


def all_to_all(caller: Caller, outputs: Any, tensors: Any, group: Any) -> tuple[Any, ...]:
    members = group_of(caller, group)
    parts = _list_of(Call(caller, members), "input", tensors)
    call = begin(caller, members, parts)
    written = _list_of(call, "output", outputs)
    call.check_tensors(written, "output")
    return tuple(_differentiable.all_to_all_parts(call, parts, written))


def all_to_all_single(
    caller: Caller, output: Any, tensor: Any, output_split_sizes: Any, input_split_sizes: Any, group: Any
) -> Any:
    call = begin(caller, group_of(caller, group), [tensor])
    call.check_tensors([output], "output")
    for role, one in (("output", output), ("input", tensor)):
        if not len(one.shape):
            call.refuse(ArgumentError(f"{{{role}}} must have a dimension to cut, got one of shape ()"))
    into = splits_of(caller, group, "output_splits", output_split_sizes)
    cuts = splits_of(caller, group, "input_splits", input_split_sizes)
    return _differentiable.all_to_all(call, tensor, output.shape[0], into, cuts, output)


def _list_of(call: Call, role: str, tensors: Any) -> list[Any]:
    """Return *tensors* as a list, which must have one for each rank."""
    if not isinstance(tensors, Sequence) or len(tensors) != call.group.size:
        what = f"{len(tensors)} of them" if isinstance(tensors, Sequence) else f"a {type(tensors).__qualname__}"
        call.refuse(ArgumentError(f"{{{role}}} must be a list of {call.group.size} tensors, got {what}"))
    return list(tensors)


def _with_the_others(tensor: Any, headers: Sequence[Header]) -> Any:
    """Return *tensor* so that it takes part in the backward of the others: if one rank runs it, all must."""
    return _attached(tensor, True) if any(header.wants_gradient for header in headers) else tensor


def _attached(tensor: Any, wants_gradient: bool) -> Any:
    """Return *tensor*, which is torch's or needs no gradient, requiring one or not."""
    if not is_torch(tensor) or bool(tensor.requires_grad) == wants_gradient:
        return tensor
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor  # the other ranks' dtype is another one, which the engine will tell
    return tensor.detach().requires_grad_(wants_gradient)


def _placeholder(call: Call, header: Header) -> Any:
    """Return an empty torch tensor of the dtype that *header* tells, which torch must have."""
    import torch

    dtype = getattr(torch, header.dtype, None)
    if not isinstance(dtype, torch.dtype):
        call.refuse(
            UnsupportedError(
                f"{{input}} must not be None in the torch frontend where torch has no dtype like the root's, "
                f"got one of {header.dtype}"
            )
        )
    made = torch.empty(0, dtype=dtype)
    return made.requires_grad_(header.wants_gradient)
