"""What ranks tell each other before they exchange tensors whose shapes only their owners know."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from shim.core import calls
from shim.core.tensors import dtype_name
from shim.errors import UnsupportedError
from shim.frontends.torch.distributed._differentiable import is_torch
from shim.frontends.torch.distributed._functional_calls import Call, Shape

__all__ = ["Header", "all_headers", "header_from"]

_DTYPE_BYTES = 32
_DIMENSIONS = 16
_LENGTH = 2 + _DTYPE_BYTES // 8 + _DIMENSIONS  # integers of 8 bytes


class Header(NamedTuple):
    """A tensor's shape and dtype, in the engine's words, and whether its owner's autograd waits for its gradient."""

    shape: Shape
    dtype: str
    wants_gradient: bool


def all_headers(call: Call, tensor: Any) -> list[Header]:
    """Return the headers of all ranks' *tensor*, by group rank."""
    everyone = array("q", bytes(8 * _LENGTH * call.group.size))
    packed = _packed(call, tensor)
    calls.barrier(call.caller, call.group, True, "gathering tensors of any shapes")
    calls.all_gather(call.caller, call.group, everyone, packed).wait()
    return [_unpacked(everyone[start : start + _LENGTH]) for start in range(0, len(everyone), _LENGTH)]


def header_from(call: Call, parts: Sequence[Any] | None, root: int) -> Header:
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


def _unpacked(numbers: array[int]) -> Header:
    wants, dimensions = numbers[:2]
    name_end = 2 + _DTYPE_BYTES // 8
    name = numbers[2:name_end].tobytes().rstrip(b"\0").decode()
    return Header(tuple(numbers[name_end : name_end + dimensions]), name, bool(wants))
