"""Which cases are measured with which contenders, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from shim.bench.cases import COMPUTING, NO_DTYPE, WITHOUT_SIZE, Case
from shim.bench.contenders import FLOORS, Contender
from shim.bench.machine_cases import machine_cases

__all__ = ["OVERLAP_SAMPLES", "Plan", "deadline_of", "overlap_weight"]

OVERLAP_SAMPLES = 3  # in one turn

_SLOWEST = 40e6  # bytes a second that any library moves at least
_PATIENCE = 30.0  # seconds for a turn of anything


@dataclass(frozen=True)
class Plan:
    """All of one run. ``seconds`` are those of timed calls that a contender gets for a case, in all its ``rounds`` together.

    Collectives that compute are measured with the ``computed`` dtypes too, on the smallest number of ranks.
    """

    collectives: Sequence[str]
    ranks: Sequence[int]
    dtypes: Sequence[str]
    sizes: Sequence[int]
    contenders: Sequence[Contender]
    rounds: int
    seconds: float
    processors: int
    memory: Callable[[int], int]  # bytes that so many ranks may take, once all ranks have been started
    overlap: Case | None = None
    computed: Sequence[str] = ()

    def cases(self, ranks: int) -> Iterator[Case]:
        """Yield the cases of *ranks* ranks, a collective's sizes one after the other."""
        for collective in self.collectives:
            if collective in WITHOUT_SIZE:
                yield Case(collective, ranks, NO_DTYPE, 0)
                continue
            computed = self.computed if collective in COMPUTING and ranks == min(self.ranks) else ()
            for dtype in (*self.dtypes, *computed):
                for size in self.sizes:
                    yield Case(collective, ranks, dtype, size)

    def turns(self, ranks: int) -> Iterator[tuple[Case, Sequence[Contender]]]:
        """Yield what is measured in a round of *ranks* ranks, each with those who take part: of the machine itself, a floor alone."""
        floors = [contender for contender in self.contenders if contender in FLOORS]
        for case in machine_cases(ranks) if floors else []:
            yield case, floors[:1]
        for case in self.cases(ranks):
            yield case, self.contenders

    @property
    def budget(self) -> float:
        """Seconds of timed calls in one turn."""
        return self.seconds / self.rounds

    @property
    def weight(self) -> float:
        """The sum of the weights of all turns of all rounds."""
        once = sum(self.turn_weight(case) * len(who) for ranks in self.ranks for case, who in self.turns(ranks))
        others = [contender for contender in self.contenders if contender not in FLOORS]
        return (once + overlap_weight(self.overlap) * len(others)) * (self.rounds + 1)

    def turn_weight(self, case: Case) -> float:
        """Return about how long a turn takes, in seconds, of whichever contender."""
        return self.budget + 0.005 + case.memory / 1e9


def overlap_weight(case: Case | None) -> float:
    """Return about how long a turn takes in which *case* runs alone and behind a product, in seconds."""
    return 0.0 if case is None else 0.6


def deadline_of(case: Case) -> float:
    """Return after how many seconds a turn's ranks are taken to hang."""
    return _PATIENCE + case.memory * case.ranks / _SLOWEST
