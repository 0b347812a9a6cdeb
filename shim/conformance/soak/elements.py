"""The dtypes that are drawn, and elements of them: cut from blocks that are made once and are the same on every rank."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shim.conformance import oracle
from shim.conformance.oracle import Array

_BLOCK = (1 << 18) + 3  # elements; no power of two, so that what is cut at regular places differs


@dataclass(frozen=True)
class Kind:
    """A dtype and the reduce ops that are defined for it; ``extension`` is the module that adds it to numpy."""

    name: str
    ops: tuple[str, ...]
    extension: str = ""

    @property
    def dtype(self) -> np.dtype[Any]:
        name: Any = getattr(importlib.import_module(self.extension), self.name) if self.extension else self.name
        return np.dtype(name)


_INTEGER = ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
_FLOAT = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "PREMUL_SUM")
_COMPLEX = ("SUM", "AVG", "PRODUCT", "PREMUL_SUM")
_WIDTHS = ("8", "16", "32", "64")
KINDS = (
    Kind("bool", _INTEGER),
    *(Kind(f"{sign}int{bits}", _INTEGER) for sign in ("", "u") for bits in _WIDTHS),
    *(Kind(f"float{bits}", _FLOAT) for bits in _WIDTHS[1:]),
    Kind("complex64", _COMPLEX),
    Kind("complex128", _COMPLEX),
    Kind("bfloat16", _FLOAT, "ml_dtypes"),
    Kind("float8_e4m3fn", (), "ml_dtypes"),
    Kind("float8_e5m2", (), "ml_dtypes"),
)


def kinds() -> list[Kind]:
    """Return those whose extension is installed."""
    return [kind for kind in KINDS if not kind.extension or importlib.util.find_spec(kind.extension) is not None]


def elements(kind: Kind, start: int, count: int, special: bool) -> Array:
    """Return *count* elements from place *start* of the endless repetition of a block; *special* ones have NaN, infinities and zeros."""
    block = _block(kind, special)
    start %= _BLOCK
    return block[start : start + count] if start + count <= _BLOCK else np.resize(np.roll(block, -start), count)


@functools.cache
def _block(kind: Kind, special: bool) -> Array:
    random = np.random.default_rng(len(kind.name))
    if kind.name == "bool":
        block = random.integers(0, 2, _BLOCK).astype(bool)
    elif kind.dtype.kind in "iu":
        block = np.frombuffer(random.bytes(_BLOCK * kind.dtype.itemsize), kind.dtype).copy()
    else:
        values = random.standard_normal(_BLOCK)
        if special:
            values[::7] = np.resize([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3e-310], values[::7].shape)
        with np.errstate(over="ignore", under="ignore"):
            block = (values - 1j * np.roll(values, 5) if kind.dtype.kind == "c" else values).astype(kind.dtype)
    block.flags.writeable = False
    return block


def combined(kind: Kind, inputs: Sequence[Array], op: str, factors: Sequence[float] | None) -> Array:
    """Return the oracle's combination of the ranks' *inputs*."""
    if kind.name != "bfloat16":
        return oracle.reduce_elements(inputs, op, factors)
    wide = [array.astype(np.float32) for array in inputs]
    return oracle.reduce_elements(wide, op, factors, oracle.bfloat16).astype(kind.dtype)
