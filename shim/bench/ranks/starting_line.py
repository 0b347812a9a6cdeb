"""Where a contender's ranks wait for each other before each timed batch, without using any library's barrier."""

from __future__ import annotations

import mmap
import os

_APART = 16  # words between two ranks' counters, so that each has cache lines of its own
_MOST_RANKS = 256
LINE_BYTES = (_MOST_RANKS + 1) * _APART * 8
_END = _MOST_RANKS * _APART  # where the first rank says at which count it wants to stop


class StartingLine:
    """A counter per rank in a file that all ranks map, LINE_BYTES long and zero at first.

    A rank counts itself up and waits for the others by looking, so that all leave as soon as the last one has come; with more ranks than
    *processors* it lets others run while it waits.
    """

    def __init__(self, path: str, rank: int, ranks: int, processors: int) -> None:
        if ranks > _MOST_RANKS:
            raise ValueError(f"ranks must be at most {_MOST_RANKS}, got {ranks}")
        with open(path, "r+b") as file:
            self._counters = memoryview(mmap.mmap(file.fileno(), LINE_BYTES)).cast("q")
        self._mine = rank * _APART
        self._others = [other * _APART for other in range(ranks) if other != rank]
        self._lets_run = ranks > processors
        self._count = 0
        self._decides = rank == 0

    def wait(self) -> None:
        """Return when all ranks have called this as often as this rank."""
        self._count = count = self._count + 1
        counters, lets_run = self._counters, self._lets_run
        counters[self._mine] = count
        for other in self._others:
            while counters[other] < count:
                if lets_run:
                    os.sched_yield()

    def agree(self, wants_end: bool) -> bool:
        """Wait, and return on all ranks what *wants_end* is on the first one."""
        if self._decides and wants_end:
            self._counters[_END] = self._count + 1
        self.wait()
        return self._counters[_END] == self._count
