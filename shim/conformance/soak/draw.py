"""Random decisions that are the same on all ranks: who draws as often from the same seed draws the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from shim.conformance.oracle import Array
from shim.conformance.soak.elements import Kind, elements

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
