"""A record as a page of Markdown: the machine, then a table per collective, number of ranks and dtype."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shim.bench.planning.cases import WITHOUT_SIZE, Case, size_text
from shim.bench.planning.floors import ONE_COPY, TWO_COPIES
from shim.bench.results.comparison import Comparison, series
from shim.bench.results.record import Record
from shim.bench.results.table import machine_lines, time_text

_COMPARED = {"torch": TWO_COPIES, "torch-shared": ONE_COPY}  # ours, and the floor of what they do


def markdown_of(record: Record) -> str:
    """Return the page: medians in microseconds; behind them, how many times as fast as the best peer ours are, and how many times the floor they take."""
    comparison = Comparison(record)
    lines = [*(f"- {line}" for line in machine_lines(record)), ""]
    for (collective, ranks, dtype), cases in series(record).items():
        kind = "" if collective in WITHOUT_SIZE else f", {dtype}"
        lines += [f"### {collective}, {ranks} ranks{kind}", "", *_table(cases, comparison), ""]
    return "\n".join(lines)


def _table(cases: list[Case], comparison: Comparison) -> Iterator[str]:
    record = comparison.record
    ours, peers, floors = (record.names(role) for role in ("ours", "peer", "floor"))
    compared = [name for name in ours if name in _COMPARED]
    yield _row(["size", *ours, *peers, *floors, *(f"{name} x {of}" for name in compared for of in ("peer", "floor"))])
    yield _row(["---", *["---:"] * (len(ours) + len(peers) + len(floors) + 2 * len(compared))])
    for case in cases:
        cells = [size_text(case.size) if case.collective not in WITHOUT_SIZE else ""]
        cells += [_figure(comparison, case, name) for name in (*ours, *peers)]
        cells += [_time(comparison.floor(case, name)) for name in floors]
        for name in compared:
            median, peer = comparison.median(case, name), comparison.best_peer(case)
            cells += [_ratio(peer[0] if peer else None, median)]
            cells += [_ratio(median, comparison.floor(case, _COMPARED[name]))]
        yield _row(cells)


def _figure(comparison: Comparison, case: Case, name: str) -> str:
    result = comparison.result(case, name)
    return result.status if result is not None and result.figures is None else _time(comparison.median(case, name))


def _time(microseconds: float | None) -> str:
    return "" if microseconds is None else time_text(microseconds)


def _ratio(time: float | None, of: float | None) -> str:
    return f"{time / of:.2f}" if time is not None and of else ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
