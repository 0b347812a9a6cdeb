"""Random decisions that are the same on all ranks: who draws as often from the same seed draws the same.

Elements are cut from blocks that are made once and are the same on every rank. A tensor lies plainly, strided, backwards, unaligned or in
shared memory, with memory around it that nobody may touch.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

import shim
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


_T = TypeVar("_T")
LARGEST = 32 << 20  # bytes of a rank's part
_SIZES = (
    0,
    40,
    4 << 10,
    64 << 10,
    512 << 10,
    4 << 20,
    LARGEST,
)  # within an arrival line, a chunk, several, the caches, none
_FREQUENCIES = (0.4, 0.3, 0.2, 0.085, 0.014, 0.001)  # of a size between one and the next


class Draw:
    """The decisions of one call. ``most`` bounds the bytes of a rank's part."""

    def __init__(self, seed: str, size: int, most: int = LARGEST) -> None:
        self._random = random.Random(seed)
        self.size = size
        self.most = most

    def one(self, choices: Sequence[_T]) -> _T:
        return self._random.choice(choices)

    def below(self, end: int) -> int:
        return self._random.randrange(end)

    def is_rare(self, times: int) -> bool:
        """Tell whether the event happens that does so once in so many *times*."""
        return self._random.randrange(times) == 0

    def rank(self) -> int:
        return self.below(self.size)

    def some(self, choices: Sequence[_T], least: int) -> list[_T]:
        """Draw at least *least* of *choices*, in any order."""
        return self._random.sample(choices, self._random.randint(least, len(choices)))

    def count(self, kind: Kind) -> int:
        """Draw how many elements a part has: mostly few, now and then none, and sometimes more than any cache holds."""
        if self.is_rare(20):
            return 0
        place = self._random.choices(range(len(_FREQUENCIES)), _FREQUENCIES)[0]
        size = self._random.uniform(_SIZES[place], _SIZES[place + 1])
        return int(min(size, self.most)) // kind.dtype.itemsize

    def array(self, kind: Kind, count: int) -> Array:
        return elements(kind, self.below(1 << 30), count, self.is_rare(8))

    def arrays(self, kind: Kind, counts: Sequence[int]) -> list[Array]:
        return [self.array(kind, count) for count in counts]

    def matrix(self, kind: Kind, count: int) -> list[list[Array]]:
        """Draw parts for every pair of ranks, of different sizes, some of them empty."""
        return [self.arrays(kind, self.counts(count)) for _ in range(self.size)]

    def counts(self, count: int) -> list[int]:
        """Draw a number of elements for every rank, all the same or each up to *count*."""
        if self.is_rare(3):
            return [count // self.size] * self.size
        return [self.below(count + 1) for _ in range(self.size)]

    def factors(self) -> list[float]:
        return [self._random.gauss(0.0, 1.0) for _ in range(self.size)]


WAYS = ("plain", "plain", "strided", "backwards", "unaligned", "shared", "shared")
_AROUND = 3  # elements before and behind


@dataclass(frozen=True)
class Placed:
    """A tensor of one dimension, and the bytes in which it lies, zeros outside it."""

    tensor: Array
    memory: Array

    def is_intact_outside(self) -> bool:
        """Tell whether the bytes outside are as they were. Sets the tensor to zero."""
        self.tensor[...] = np.zeros((), self.tensor.dtype)
        return not self.memory.any()


def place(draw: Draw, array: Array) -> Placed:
    """Return a copy of *array* in a place of *draw*'s choice."""
    way = draw.one(WAYS)
    item = array.dtype.itemsize
    room = array.size * (3 if way == "strided" else 1) + 2 * _AROUND
    if way == "shared":
        memory = shim.empty(room * item, "uint8")
        memory[:] = 0
    else:
        memory = np.zeros(room * item + (way == "unaligned"), np.uint8)
    inside = memory[-(room - _AROUND) * item : -_AROUND * item].view(array.dtype)
    if way == "strided":
        inside = inside[::3]
    elif way == "backwards":
        inside = inside[::-1]
    inside[...] = array
    return Placed(inside, memory)
