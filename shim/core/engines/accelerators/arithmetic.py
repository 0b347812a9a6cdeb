"""How a reduction is made of what all of torch's backends do: SUM, PRODUCT, MIN and MAX of dtypes that they have."""

from __future__ import annotations

import sys
from typing import Any

from shim.core.reduce_ops import ReduceOp
from shim.errors import UnsupportedError

__all__ = ["check", "divided", "multiplied", "torch_op", "viewed"]

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


def check(library: str, dtype: str, op: ReduceOp) -> None:
    """Raise UnsupportedError for what cannot be made of what *library* does."""
    done = (*_OF_BOOL, *_ORDERING) if dtype == "bool" else _OF_NUMBERS.get(dtype, ())
    if op not in done:
        raise UnsupportedError(
            f"{{op}} {op.name} of elements of type {dtype} is not among what is done by {library}\nConvert the tensors, or pass them in host memory."
        )


def torch_op(dtype: str, op: ReduceOp) -> Any:
    """Return torch's op for the backend."""
    named = sys.modules["torch"].distributed.ReduceOp
    name = _OF_BOOL.get(op) if dtype == "bool" else None
    return getattr(named, name or _NAMES.get(op, op.name))


def viewed(part: Any, dtype: str) -> Any:
    """Return the elements of *part* as those of the dtype with which the backend combines them."""
    return part.view(getattr(sys.modules["torch"], _AS_OTHERS[dtype])) if dtype in _AS_OTHERS else part


def multiplied(part: Any, op: ReduceOp, factor: float) -> Any:
    """Return what is given to the backend for *part*."""
    return part * factor if op is ReduceOp.PREMUL_SUM else part


def divided(part: Any, op: ReduceOp, size: int) -> None:
    """Make of what the backend has written to *part* the result for *size* ranks."""
    if op is ReduceOp.AVG:
        part.div_(size)
