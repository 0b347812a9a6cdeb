"""Which of NCCL's dtypes and reduce ops stand for ours."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from shim._native import dtype_bytes
from shim.core.engines.nccl.library import DTYPES
from shim.core.reduce_ops import ReduceOp
from shim.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.nccl.device_link import DeviceLink

_OPS = {ReduceOp.SUM: 0, ReduceOp.PRODUCT: 1, ReduceOp.MAX: 2, ReduceOp.MIN: 3, ReduceOp.AVG: 4}
# Of a complex number both parts are added alike, and nothing else is done to them alike.
_PARTS_OF_COMPLEX = {"complex64": "float32", "complex128": "float64"}
_ADDING = (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM)
# Of bytes that are 0 or 1.
_OF_BOOL = {
    ReduceOp.SUM: 2,
    ReduceOp.MAX: 2,
    ReduceOp.BOR: 2,
    ReduceOp.PRODUCT: 3,
    ReduceOp.MIN: 3,
    ReduceOp.BAND: 3,
}


def check(dtype: str, op: ReduceOp, factor: float) -> None:
    """Raise UnsupportedError for what NCCL cannot do, and ArgumentError for a *factor* that the elements' type cannot hold."""
    found, number = _found(dtype, op)
    if number is None:
        _scalar(found, factor)


@contextmanager
def reduction_of(link: DeviceLink, request: Request, is_alone: bool = False) -> Iterator[tuple[int, int, Any]]:
    """Give NCCL's dtype, its bytes, and NCCL's op for the reduction of *request* over *link*, where this rank may be *alone*."""
    of_request = ReduceOp(request.op)
    dtype, op = _found(request.dtype, ReduceOp.SUM if is_alone and of_request is ReduceOp.AVG else of_request)
    number, width = DTYPES[dtype], dtype_bytes(dtype)
    if op is not None:
        yield number, width, op
        return
    with link.scaled_sum(number, _scalar(dtype, request.factor)) as made:
        yield number, width, made


def _found(dtype: str, op: ReduceOp) -> tuple[str, int | None]:
    """Return our name of NCCL's dtype, and its op; none for PREMUL_SUM, of which each call makes its own."""
    if dtype == "bool" and op in _OF_BOOL:
        return "uint8", _OF_BOOL[op]
    if op in _ADDING:
        dtype = _PARTS_OF_COMPLEX.get(dtype, dtype)
    if dtype in DTYPES and (op is ReduceOp.PREMUL_SUM or op in _OPS):
        return dtype, _OPS.get(op)
    raise UnsupportedError(
        f"{{op}} {op.name} of elements of type {dtype} is not among what NCCL does\nConvert the tensors, or pass them in host memory."
    )


def _scalar(dtype: str, factor: float) -> ctypes.Array[ctypes.c_char]:
    try:
        packed = struct.pack({"float16": "e", "bfloat16": "f", "float32": "f", "float64": "d"}[dtype], factor)
    except OverflowError:
        raise ArgumentError(f"factor must be one that {dtype} can hold, got {factor!r}") from None
    if dtype == "bfloat16":  # the upper half of a float32, rounded to nearest, ties to even
        (bits,) = struct.unpack("I", packed)
        packed = struct.pack("H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    return ctypes.create_string_buffer(packed, len(packed))
