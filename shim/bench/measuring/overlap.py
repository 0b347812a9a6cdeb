"""How an asynchronous all_reduce and a matrix product of about the same length run together, measured turn by turn."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from shim.bench.planning.cases import Case
from shim.bench.planning.plan import OVERLAP_SAMPLES
from shim.bench.ranks.turn import Answer, OverlapTurn
from shim.bench.results.figures import Overlap, slowest

_FIRST_SIDE, _LARGEST_SIDE = 512, 8192  # rows of the matrices
_STEP = 16  # rows
_WAYS = 3  # the all_reduce alone, the product alone, both


class OverlapMeasurement:
    """One contender's turns. The first one finds out how large the matrices have to be, and counts for nothing else.

    ``refused`` says why there is nothing to measure.
    """

    def __init__(self, case: Case, contender: str) -> None:
        self.case, self.contender = case, contender
        self.refused = ""
        self._side = 0
        self._samples: list[float] = []

    def turn(self) -> OverlapTurn:
        return OverlapTurn(self.case, self._side or _FIRST_SIDE, OVERLAP_SAMPLES)

    def take(self, answers: Sequence[Answer]) -> None:
        """Take in what the ranks answered to a turn."""
        refused = next((answer.cannot for answer in answers if answer.cannot), None)
        if refused:
            self.refused = refused
            return
        times = slowest([answer.seconds for answer in answers])
        if self._side:
            self._samples += times
        else:
            self._side = _side_for(*(statistics.median(times[way::_WAYS]) for way in range(2)))

    def overlap(self) -> Overlap:
        """Return what has been measured, or why nothing has."""
        if self.refused:
            return Overlap(self.case, self.contender, reason=self.refused)
        alone, product, both = (statistics.median(self._samples[way::_WAYS]) * 1e6 for way in range(_WAYS))
        return Overlap(self.case, self.contender, self._side, alone, product, both, len(self._samples) // _WAYS)


def _side_for(communication: float, product: float) -> int:
    """Return how many rows the matrices need for their product to take as long as the communication."""
    side: float = _FIRST_SIDE * (communication / product) ** (1 / 3)
    return max(_STEP, min(_LARGEST_SIDE, round(side / _STEP) * _STEP))
