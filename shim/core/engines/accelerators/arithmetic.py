"""How a reduction is made of what all of torch's backends do: SUM, PRODUCT, MIN and MAX of dtypes that they have."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

from shim.core.engines.accelerators.parts import writing
from shim.core.reduce_ops import ReduceOp
from shim.errors import ArgumentError, UnsupportedError

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


@dataclass(frozen=True)
class Reduction:
    """What the elements of *dtype* of *size* ranks are combined by."""

    dtype: str
    op: ReduceOp
    factor: float
    size: int

    def check(self, library: str) -> None:
        """Raise UnsupportedError for what cannot be made of what *library* does, and ArgumentError for a factor that the dtype cannot hold."""
        done = (*_OF_BOOL, *_ORDERING) if self.dtype == "bool" else _OF_NUMBERS.get(self.dtype, ())
        if self.op not in done:
            raise UnsupportedError(
                f"{{op}} {self.op.name} of elements of type {self.dtype} is not among what is done by {library}\n"
                "Convert the tensors, or pass them in host memory."
            )
        if self.op is ReduceOp.PREMUL_SUM:
            torch = sys.modules["torch"]
            if math.isfinite(self.factor) and abs(self.factor) > torch.finfo(getattr(torch, self.dtype)).max:
                raise ArgumentError(f"factor must be one that {self.dtype} can hold, got {self.factor!r}")

    def torch_op(self) -> Any:
        """Return torch's op for the backend."""
        named = sys.modules["torch"].distributed.ReduceOp
        name = _OF_BOOL.get(self.op) if self.dtype == "bool" else None
        return getattr(named, name or _NAMES.get(self.op, self.op.name))

    def viewed(self, part: Any) -> Any:
        """Return the elements of *part* as those of the dtype with which the backend combines them."""
        other = _AS_OTHERS.get(self.dtype)
        return part if other is None else part.view(getattr(sys.modules["torch"], other))

    def prepared(self, part: Any) -> Any:
        """Return what is given to the backend for *part*."""
        if self.op is ReduceOp.PREMUL_SUM:
            return part * self.factor
        return part / self.size if self._is_divided_before() else part

    def finish(self, part: Any) -> None:
        """Make of what the backend has written to *part* the result."""
        if self.op is ReduceOp.AVG and not self._is_divided_before():
            with writing(part):
                part.div_(self.size)

    def _is_divided_before(self) -> bool:
        return self.op is ReduceOp.AVG and self.dtype == "float16"  # whose sum could be too large
