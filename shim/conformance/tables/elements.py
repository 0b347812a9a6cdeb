"""Tensors of every dtype of the tables, made from numpy arrays and read back, bit by bit.

numpy has no bfloat16 and no float8. An array of these holds the bits of its elements, in a dtype with one field that
is called like theirs: it can be cut, joined and compared like any other, and is never taken for one of integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from shim.conformance import oracle
from shim.conformance.kinds import KINDS, UNWRITTEN, TensorKind
from shim.conformance.oracle import Array
from shim.core.tensors import framework_of

ALL_DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"),
)
_BITS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
_ENCODED = {name: np.dtype([(name, bits)]) for name, bits in _BITS.items()}
_LACKS = {"numpy": frozenset(_BITS), "paddle": frozenset(("uint16", "uint32", "uint64"))}
_BYTES_BEFORE_NAN = 0x78  # the smaller float8 patterns are numbers in both forms


def kind_for(preferred: str, dtypes: Sequence[str], allowed: Sequence[str]) -> str | None:
    """Return the first kind of tensor, of those *allowed*, that has all the *dtypes*; None if there is none.

    *preferred* comes first, and then numpy, because any frontend takes its arrays.
    """
    for kind in (preferred, *KINDS):
        if kind in allowed and not _LACKS.get(kind, frozenset()) & set(dtypes):
            return kind
    return None


class Tensors:
    """Makes and reads tensors of one kind."""

    def __init__(self, kind: TensorKind) -> None:
        self.kind = kind

    def make(self, array: Array) -> Any:
        """Return a new tensor with the dtype, shape and elements of *array*."""
        if array.dtype.names is None:
            return self.kind.make(array)
        [name] = array.dtype.names
        return _ENCODERS[self.kind.name](self.kind, array.view(_BITS[name]), name)

    def make_all(self, arrays: Iterable[Array]) -> list[Any]:
        """Return a new tensor for each array."""
        return [self.make(np.asarray(array)) for array in arrays]

    def blank(self, shape: Sequence[int], dtype: str = "float32") -> Any:
        """Return a tensor to be written, filled with what is not in any input."""
        bits = np.full(shape, UNWRITTEN, _BITS.get(dtype, dtype))
        return self.make(bits.view(_ENCODED.get(dtype, bits.dtype)))

    def read(self, tensor: Any) -> Array:
        """Return a copy of *tensor*'s elements. Raises TypeError for what is no tensor of this kind."""
        if framework_of(type(tensor)) != self.kind.name:
            raise TypeError(f"a tensor of {self.kind.name} was expected, {type(tensor)!r} seen")
        name = str(tensor.dtype).rpartition(".")[2].lower().replace("float8e", "float8_e")
        if name not in _BITS:
            return self.kind.read(tensor)
        return _DECODERS[self.kind.name](self.kind, tensor, _BITS[name]).view(_ENCODED[name])

    def read_all(self, tensors: Sequence[Any]) -> list[Array]:
        """Return copies of the elements of several tensors."""
        return [self.read(tensor) for tensor in tensors]

    def dtype(self, name: str = "float32") -> Any:
        """Return what this kind's framework calls the dtype *name*."""
        return np.dtype(name) if self.kind.name == "numpy" else getattr(self.kind.module, name)


def _view(kind: TensorKind, tensor: Any, dtype: str) -> Any:
    return tensor.view(getattr(kind.module, dtype))


_ENCODERS: dict[str, Callable[[TensorKind, Array, str], Any]] = {
    "torch": lambda kind, bits, name: _view(kind, kind.make(bits), name),
    # Paddle takes numpy's uint16 for bfloat16, and gives it back so.
    "paddle": lambda kind, bits, name: kind.make(bits) if name == "bfloat16" else _view(kind, kind.make(bits), name),
    "mindspore": lambda kind, bits, name: _view(kind, kind.make(bits), name),
}
_DECODERS: dict[str, Callable[[TensorKind, Any, str], Array]] = {
    "torch": lambda kind, tensor, bits: kind.read(_view(kind, tensor, bits)),
    "paddle": lambda kind, tensor, bits: kind.read(tensor),
    "mindspore": lambda kind, tensor, bits: kind.read(_view(kind, tensor, bits)),
}


def numbers(rank: int, shape: Sequence[int] = (2, 3), dtype: str = "float32") -> Array:
    """Return elements that differ by rank and position, up to four ranks and twenty elements.

    They are in another order of size at every position, so that no rank's array can pass for the least or greatest.
    """
    place = np.arange(int(np.prod(shape)), dtype="int64").reshape(shape)
    if dtype == "bool":
        return np.asarray((place >> rank) % 2 == 1)
    if dtype.startswith("float8"):
        return np.asarray((place * 7 + rank * 31 + 1) % _BYTES_BEFORE_NAN, "uint8").view(_ENCODED[dtype])
    values = np.asarray(1 + place + 20 * ((rank + place) % 4))
    if dtype.startswith("complex"):
        return np.asarray(values + 1j * (place - 3 * rank), dtype)
    if dtype == "bfloat16":
        return _to_bfloat16(values.astype("float32"))
    return values.astype(dtype)


def everyone(size: int, shape: Sequence[int] = (2, 3), dtype: str = "float32") -> list[Array]:
    """Return the numbers of all ranks."""
    return [numbers(rank, shape, dtype) for rank in range(size)]


def exchange(rank: int, size: int, form: str) -> tuple[list[Array], list[Array]]:
    """Return the parts that *rank* sends to each rank, and those that it gets from each.

    *form* is ``equal``, or ``unequal``: parts of different numbers of rows, the first of them none.
    """
    rows = [[2 if form == "equal" else one + 2 * peer for peer in range(size)] for one in range(size)]
    parts = [oracle.cut(numbers(one, (sum(rows[one]), 3)), rows[one]) for one in range(size)]
    return parts[rank], oracle.all_to_all(parts)[rank]


def combined(inputs: Sequence[Array], op: str) -> Array:
    """Return what *op* makes of the ranks' arrays, of any dtype but float8."""
    if inputs[0].dtype != _ENCODED["bfloat16"]:
        return oracle.reduce_elements(inputs, op)
    values = [(array.view("uint16").astype("uint32") << 16).view("float32") for array in inputs]
    return _to_bfloat16(oracle.reduce_elements(values, op, rounding=oracle.bfloat16))


def _to_bfloat16(values: Array) -> Array:
    bits = np.asarray(oracle.bfloat16(values)).view("uint32")
    return np.asarray(bits >> 16, "uint16").view(_ENCODED["bfloat16"])
