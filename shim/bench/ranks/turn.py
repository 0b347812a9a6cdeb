"""Where a contender's ranks wait for each other before each timed batch, without using any library's barrier."""

from __future__ import annotations

import math
import mmap
import os
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from shim.bench.cases import Case
from shim.bench.libraries.base import Batch, CannotError, Library, OverlapParts

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


@dataclass(frozen=True)
class Turn:
    """Time *samples* batches of *case* after *warm_up* ones; with *check*, compare the outputs of the first one with what they must be.

    A batch has *calls* calls, as many as the case says where that is None. After *seconds* no other batch begins, but one is timed.
    """

    case: Case
    samples: int
    warm_up: int
    check: bool
    calls: int | None = None
    seconds: float = math.inf


@dataclass(frozen=True)
class OverlapTurn:
    """Time an all_reduce of *case* and a product of matrices of *side* rows, each alone and then together, *samples* times."""

    case: Case
    side: int
    samples: int


@dataclass(frozen=True)
class Answer:
    """What came of a turn on one rank.

    ``seconds`` are those of a call in each sample; ``spent`` is what a sample takes with all that belongs to it. Where there are ``ways``
    to do the same, as many samples of the second one come after those of the first. Of an overlap turn each sample has three: the all_reduce, the product, both. ``cannot`` says why the library cannot do this case, in which nothing
    was sent that another rank could wait for; ``error`` is a traceback, after which the ranks are of no more use.
    """

    seconds: list[float] = field(default_factory=list)
    spent: float = 0.0
    ways: int = 1
    cannot: str | None = None
    error: str | None = None


def take_turn(library: Library, line: StartingLine, turn: Turn) -> Answer:
    """Carry out *turn* and answer; nothing is raised."""
    try:
        batch = library.batch(turn.case, turn.calls or turn.case.batch)
    except Exception as error:  # a library refuses in its own way; the table shows what it said
        return Answer(cannot=_in_short(error))
    try:
        return _timed(batch, line, turn)
    except Exception:  # as above
        return Answer(error=traceback.format_exc())
    finally:
        batch.close()


def _timed(batch: Batch, line: StartingLine, turn: Turn) -> Answer:
    if turn.check:
        batch.rewrite()
        try:
            batch.run()
        except Exception as error:  # as in take_turn; all ranks are refused the same call
            return Answer(cannot=_in_short(error))
        if wrong := batch.mismatch():
            return Answer(error=f"wrong result: {wrong}")
    ways: list[list[float]] = []
    spent = 0.0
    for way in range(batch.ways):
        _samples(batch, line, turn, turn.warm_up, way)
        begin = time.perf_counter()
        ways.append(_samples(batch, line, turn, turn.samples, way))
        spent += (time.perf_counter() - begin) / max(1, len(ways[-1]))
    line.wait()  # nobody gives back memory that others still read
    fewest = min(map(len, ways))
    return Answer([seconds for one in ways for seconds in one[:fewest]], spent, batch.ways)


def _samples(batch: Batch, line: StartingLine, turn: Turn, most: int, way: int) -> list[float]:
    """Return the seconds of a call in each of up to *most* batches; all ranks stop after the same one."""
    until = time.perf_counter() + turn.seconds
    seconds: list[float] = []
    while len(seconds) < most:
        if seconds and line.agree(time.perf_counter() > until):
            break
        seconds.append(_sample(batch, line, way))
    return seconds


def _sample(batch: Batch, line: StartingLine, way: int) -> float:
    batch.rewrite()
    line.wait()
    return batch.run(way)


def take_overlap_turn(library: Library, line: StartingLine, turn: OverlapTurn) -> Answer:
    """Carry out *turn* and answer; nothing is raised."""
    try:
        parts = library.overlap(turn.case, turn.side)
    except Exception as error:  # as in take_turn
        return Answer(cannot=_in_short(error))
    try:
        ways = (_communicate, _multiply, _both)
        for way in ways:
            way(parts)
        begin = time.perf_counter()
        seconds = [_alone(line, parts, way) for _ in range(turn.samples) for way in ways]
        return Answer(seconds, (time.perf_counter() - begin) / max(1, turn.samples))
    except Exception:  # as in take_turn
        return Answer(error=traceback.format_exc())


def _alone(line: StartingLine, parts: OverlapParts, way: Callable[[OverlapParts], None]) -> float:
    line.wait()
    begin = time.perf_counter()
    way(parts)
    return time.perf_counter() - begin


def _communicate(parts: OverlapParts) -> None:
    parts.start()()


def _multiply(parts: OverlapParts) -> None:
    parts.product()


def _both(parts: OverlapParts) -> None:
    wait = parts.start()
    parts.product()
    wait()


def _in_short(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip(" -")]
    told = next((line for line in reversed(lines) if "Error" in line), lines[0]) if len(lines) > 3 else lines[0]
    return told if isinstance(error, CannotError) else f"{type(error).__name__}: {told}"
