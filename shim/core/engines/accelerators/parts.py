"""The tensors of one call, as flat pieces of theirs that are the ranks' parts, and how a reduction of these is made.

It is made of what all of torch's backends do: SUM, PRODUCT, MIN and MAX of dtypes that they have.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from shim.core.reduce_ops import ReduceOp
from shim.errors import ArgumentError, TensorError, UnsupportedError

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
class Parts:
    """One flat tensor for each part, and ``whole``, of which they are pieces; where each of them has memory of its own, there is none."""

    each: Sequence[Any]
    whole: Any = None

    def __len__(self) -> int:
        return len(self.each)

    def is_even(self) -> bool:
        """Tell whether all parts have one size."""
        return len({part.numel() for part in self.each}) == 1

    def sizes(self) -> list[int]:
        """Return the number of elements of each part."""
        return [part.numel() for part in self.each]


def parts_of(tensors: Any, places: Sequence[tuple[int, int]]) -> Parts:
    """Return the parts of *tensors*, None, one or a sequence, which a request has at *places*."""
    if tensors is None or not places:
        return Parts(())
    if isinstance(tensors, (list, tuple)):
        return Parts([flat(tensor) for tensor in tensors])
    whole = flat(tensors)
    return Parts(whole.split([size // whole.element_size() for _, size in places]), whole)


def flat(tensor: Any) -> Any:
    """Return the elements of *tensor*, which is contiguous, in one dimension and without what autograd knows of them.

    Raises TensorError where they have an order in memory that is the device's own, of which torch gives a copy alone.
    """
    found = tensor.detach().as_strided((tensor.numel(),), (1,))  # whatever it says of dimensions with one element
    if found.data_ptr() != tensor.data_ptr():
        raise TensorError(
            "{tensor} must have the usual order of elements in memory, got one in a format of its device's own\n"
            "Convert it, as by torch_npu.npu_format_cast(tensor, 2), and read the result there."
        )
    return found


def check_is_torchs(library: str, tensors: Any) -> None:
    """Raise TensorError for what *library* cannot be given, as torch's backends take torch's tensors alone."""
    torch = sys.modules["torch"]
    for tensor in tensors if isinstance(tensors, (list, tuple)) else [tensors]:
        if tensor is not None and not isinstance(tensor, torch.Tensor):
            raise TensorError(
                f"{{tensor}} must be torch's for {library}, which torch's backend serves, got a "
                f"{type(tensor).__module__}.{type(tensor).__qualname__}\nHand its memory to torch by torch.from_dlpack, or set SHIM_STAGE=host."
            )


def write(target: Any, source: Any) -> None:
    """Copy the elements of *source* to *target*, unless they are there."""
    if target.data_ptr() != source.data_ptr():
        with writing(target):
            target.copy_(source)


def writing(target: Any) -> AbstractContextManager[object]:
    """Return a context in which *target* may be written: one that was made in torch's inference mode, there alone."""
    mode: AbstractContextManager[object] = sys.modules["torch"].inference_mode(target.is_inference())
    return mode


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
