"""Exchanges of tensors whose shapes only their owners know: ranks tell each other those first."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors import dtype_name
from shim.errors import ArgumentError, MismatchError, UnsupportedError
from shim.frontends.torch._functional import differentiable
from shim.frontends.torch._functional.differentiable import begin_call, is_torch
from shim.frontends.torch._functional.eager_calls import Call, Shape

_DTYPE_BYTES = 32
_DIMENSIONS = 16
_LENGTH = 2 + _DTYPE_BYTES // 8 + _DIMENSIONS  # integers of 8 bytes


class _Header(NamedTuple):
    """A tensor's shape and dtype, in the engine's words, and whether its owner's autograd waits for its gradient."""

    shape: Shape
    dtype: str
    wants_gradient: bool


def _all_headers(call: Call, tensor: Any) -> list[_Header]:
    """Return the headers of all ranks' *tensor*, by group rank."""
    everyone = array("q", bytes(8 * _LENGTH * call.group.size))
    packed = _packed(call, tensor)
    calls.barrier(call.caller, call.group, True, "gathering tensors of any shapes")
    calls.all_gather(call.caller, call.group, everyone, packed).wait()
    return [_unpacked(everyone[start : start + _LENGTH]) for start in range(0, len(everyone), _LENGTH)]


def _header_from(call: Call, parts: Sequence[Any] | None, root: int) -> _Header:
    """Return the header of this rank's place in the group rank *root*'s *parts*."""
    mine = array("q", bytes(8 * _LENGTH))
    sent = None
    if call.group.rank == root:
        sent = array("q")
        for part in parts or ():
            sent.extend(_packed(call, part))
    calls.barrier(call.caller, call.group, True, "scattering tensors of any shapes")
    calls.scatter(call.caller, call.group, mine, sent, root).wait()
    return _unpacked(mine)


def _packed(call: Call, tensor: Any) -> array[int]:
    shape = tuple(tensor.shape)
    if len(shape) > _DIMENSIONS:
        call.refuse(
            UnsupportedError(f"{{input}} must have at most {_DIMENSIONS} dimensions in the torch frontend, got {shape}")
        )
    name = array("q", dtype_name(tensor).encode()[:_DTYPE_BYTES].ljust(_DTYPE_BYTES, b"\0"))
    rest = array("q", bytes(8 * (_DIMENSIONS - len(shape))))
    return array("q", [_wants_gradient(tensor), len(shape)]) + name + array("q", shape) + rest


def _wants_gradient(tensor: Any) -> bool:
    return is_torch(tensor) and bool(tensor.requires_grad and sys.modules["torch"].is_grad_enabled())


def _unpacked(numbers: array[int]) -> _Header:
    wants, dimensions = numbers[:2]
    name_end = 2 + _DTYPE_BYTES // 8
    name = numbers[2:name_end].tobytes().rstrip(b"\0").decode()
    return _Header(tuple(numbers[name_end : name_end + dimensions]), name, bool(wants))


def scatter_of_any_shapes(caller: Caller, members: ProcessGroup, tensors: Any, root: int) -> Any:
    """Return this rank's place in the group rank *root*'s *tensors*, which other ranks need not give."""
    if tensors is None and members.rank != root:
        call = begin_call(caller, members, [])
        header = _header_from(call, None, root)
        return differentiable.scatter(call, [_placeholder(call, header)], header.shape, root)
    parts = list_for_all(Call(caller, members), "input", tensors)
    call = begin_call(caller, members, parts)
    header = _header_from(call, parts, root)
    if members.rank != root:
        if tuple(parts[members.rank].shape) != header.shape:
            call.refuse(
                MismatchError(
                    f"{{input}} must be None or like the root's, which sends shape {header.shape}, "
                    f"got shape {tuple(parts[members.rank].shape)}"
                )
            )
        parts = [_attached(part, header.wants_gradient) for part in parts]
    return differentiable.scatter(call, parts, header.shape, root)


def list_for_all(call: Call, role: str, tensors: Any) -> list[Any]:
    """Return *tensors* as a list, which must have one for each rank."""
    if not isinstance(tensors, Sequence) or len(tensors) != call.group.size:
        what = f"{len(tensors)} of them" if isinstance(tensors, Sequence) else f"a {type(tensors).__qualname__}"
        call.refuse(ArgumentError(f"{{{role}}} must be a list of {call.group.size} tensors, got {what}"))
    return list(tensors)


def with_headers(call: Call, tensor: Any) -> tuple[Any, list[Shape]]:
    """Return *tensor* and the shapes of all ranks', by group rank.

    It takes part in the backward of the others: if one rank runs it, all must.
    """
    headers = _all_headers(call, tensor)
    taken = _attached(tensor, True) if any(header.wants_gradient for header in headers) else tensor
    return taken, [header.shape for header in headers]


def _attached(tensor: Any, wants_gradient: bool) -> Any:
    """Return *tensor*, which is torch's or needs no gradient, requiring one or not."""
    if not is_torch(tensor) or bool(tensor.requires_grad) == wants_gradient:
        return tensor
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor  # the other ranks' dtype is another one, which the engine will tell
    return tensor.detach().requires_grad_(wants_gradient)


def _placeholder(call: Call, header: _Header) -> Any:
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
