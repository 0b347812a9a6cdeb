"""A record's figures side by side: a contender's, the best peer's, and the floor of the case."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shim.bench.cases import LINE, MEMORY_BYTES, Case
from shim.bench.results.record import Record, Result


class Comparison:
    """Looks up medians, in microseconds. What was not measured is None."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self._results = {(result.case, result.contender): result for result in record.results}
        self._peers = record.names("peer")
        self._round_trips = {
            result.case.ranks: result.figures.median
            for result in record.results
            if result.case.collective == LINE and result.figures is not None
        }

    def result(self, case: Case, contender: str) -> Result | None:
        return self._results.get((case, contender))

    def median(self, case: Case, contender: str) -> float | None:
        result = self.result(case, contender)
        return result.figures.median if result is not None and result.figures is not None else None

    def cannot(self, case: Case, contender: str) -> bool:
        """Return whether *contender* has said that it has no such thing."""
        result = self.result(case, contender)
        return result is not None and result.status == "cannot"

    def best(self, case: Case, contenders: Iterable[str]) -> tuple[float, str] | None:
        """Return the shortest median among *contenders*, and whose it is."""
        found = [(median, name) for name in contenders if (median := self.median(case, name)) is not None]
        return min(found, default=None)

    def best_peer(self, case: Case, among: Callable[[str], bool] = lambda name: True) -> tuple[float, str] | None:
        return self.best(case, filter(among, self._peers))

    def floor(self, case: Case, kind: str) -> float | None:
        """Return what *case* takes at least: the movement of *kind*, and half a round trip of a cache line, medians like all others."""
        moved, trip = self.result(case, kind), self._round_trips.get(case.ranks)
        if moved is None or moved.figures is None or trip is None:
            return None
        return moved.figures.median + trip / 2


def series(record: Record) -> dict[tuple[str, int, str], list[Case]]:
    """Return the cases of a record that are shown together: those of a collective, a number of ranks and a dtype."""
    found: dict[tuple[str, int, str], dict[Case, None]] = {}
    for result in record.results:
        case = result.case
        if case.collective != LINE and case.collective not in MEMORY_BYTES:
            found.setdefault((case.collective, case.ranks, case.dtype), {})[case] = None
    return {key: list(cases) for key, cases in found.items()}
