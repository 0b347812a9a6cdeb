"""How a reduction is made of what all of torch's backends do: SUM, PRODUCT, MIN and MAX of dtypes that they have."""

from __future__ import annotations

import math
import sys
from typing import Any

from shim.core.engines.accelerators.parts import writing
from shim.core.reduce_ops import ReduceOp
from shim.errors import ArgumentError, UnsupportedError

__all__ = ["check", "finished", "prepared", "torch_op", "viewed"]

_ADDING = (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM)
_ORDERING = (ReduceOp.MIN, ReduceOp.MAX)
_OF_NUMBERS: dict[str, tuple[ReduceOp, ...]] = {
    **dict.fromkeys(("float16", "bfloat16", "float32", "float64"), (*_ADDING, ReduceOp.PRODUCT, *_ORDERING)),
    **dict.fromkeys(("complex64", "complex128"), _ADDING),
    **dict.fromkeys(("int8", "int32", "int64", "uint8"), (ReduceOp.SUM, ReduceOp.PRODUCT, *_ORDERING)),
    **dict.fromkeys(("uint32", "uint64"), (ReduceOp.SUM, ReduceOp.PRODUCT)),
}
_OF_BOOL = {ReduceOp.SUM: "MAX", ReduceOp.BOR: "MAX", ReduceOp.PRODUCT: "MIN", ReduceOp.BAND: "MIN"}
_NAMES = {ReduceOp.AVG: "SUM", ReduceOp.PREMUL_SUM: "SUM"}
# A dtype as another one, whose arithmetic gives the same bits.
_AS_OTHERS = {"bool": "uint8", "uint32": "int32", "uint64": "int64", "complex64": "float32", "complex128": "float64"}


def check(library: str, dtype: str, op: ReduceOp, factor: float) -> None:
    """Raise UnsupportedError for what cannot be made of what *library* does, and ArgumentError for a *factor* that the elements' type cannot hold."""
    done = (*_OF_BOOL, *_ORDERING) if dtype == "bool" else _OF_NUMBERS.get(dtype, ())
    if op not in done:
        raise UnsupportedError(
            f"{{op}} {op.name} of elements of type {dtype} is not among what is done by {library}\nConvert the tensors, or pass them in host memory."
        )
    if op is ReduceOp.PREMUL_SUM:
        torch = sys.modules["torch"]
        if math.isfinite(factor) and abs(factor) > torch.finfo(getattr(torch, dtype)).max:
            raise ArgumentError(f"factor must be one that {dtype} can hold, got {factor!r}")


def torch_op(dtype: str, op: ReduceOp, _factor: float) -> Any:
    """Return torch's op for the backend."""
    named = sys.modules["torch"].distributed.ReduceOp
    name = _OF_BOOL.get(op) if dtype == "bool" else None
    return getattr(named, name or _NAMES.get(op, op.name))


def viewed(part: Any, dtype: str, _op: ReduceOp, _factor: float) -> Any:
    """Return the elements of *part* as those of the dtype with which the backend combines them."""
    return part.view(getattr(sys.modules["torch"], _AS_OTHERS[dtype])) if dtype in _AS_OTHERS else part


def prepared(part: Any, dtype: str, op: ReduceOp, factor: float, size: int) -> Any:
    """Return what is given to the backend for *part* of one of *size* ranks."""
    if op is ReduceOp.PREMUL_SUM:
        return part * factor
    return part / size if op is ReduceOp.AVG and dtype == "float16" else part  # whose sum could be too large


def finished(part: Any, dtype: str, op: ReduceOp, _factor: float, size: int) -> None:
    """Make of what the backend has written to *part* the result."""
    if op is ReduceOp.AVG and dtype != "float16":
        with writing(part):
            part.div_(size)
