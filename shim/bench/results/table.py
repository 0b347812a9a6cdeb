"""A record as tables, in a terminal and in Markdown: one per collective, number of ranks and dtype, with sizes down and contenders across."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from shim.bench.cases import LINE, MEMORY_BYTES, WITHOUT_SIZE, Case, size_text
from shim.bench.floors import ONE_COPY, TWO_COPIES
from shim.bench.results.comparison import Comparison, series
from shim.bench.results.record import Overlap, Record, Result

_UNBOUNDED = 100_000  # columns


def print_record(record: Record, console: Console) -> None:
    """Print the machine, every table, what could not be measured, and how the figures are to be read."""
    console.print("\n".join(machine_lines(record)), highlight=False, markup=False)
    comparison = Comparison(record)
    for (collective, ranks, dtype), cases in series(record).items():
        kind = "" if collective in WITHOUT_SIZE else f", {dtype}"
        console.print(f"\n{collective}, {ranks} ranks{kind}", style="bold")
        for part in _parts(cases, comparison, console):
            console.print(part)
    for renderable in _overlaps(record.overlaps):
        console.print(renderable)
    notes = list(_notes(record))
    if notes:
        console.print("\nNot measured:", style="bold")
        console.print("\n".join(notes), highlight=False, markup=False)
    console.print(
        "\nMicroseconds of a call on the slowest rank: median over all rounds (quartiles). Below ours: how many times as fast as"
        " the best peer, and how many times the floor, two copies and one.",
        style="dim",
    )


def machine_lines(record: Record) -> list[str]:
    """Return a few lines on the machine, what it can do at all, and the versions of all."""
    machine = record.machine
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    lines = [
        f"{machine['processor']}, {machine['processors_usable']} of {machine['processors']} processors, {caches}"
        f"{', virtual' if machine['hypervisor'] else ''}",
        f"kernel {machine['kernel']}, Python {machine['python']}, load before the run {machine['load_before'][0]}",
        *busy_lines(machine, max((result.case.ranks for result in record.results), default=0)),
        *_floor_lines(record),
    ]
    for contender in record.contenders:
        versions = ", ".join(f"{name} {version}" for name, version in contender.versions.items())
        lines.append(f"{contender.name}: {contender.title}{f' ({versions})' if versions else ''}")
    return lines


def busy_lines(machine: dict[str, Any], ranks: int) -> list[str]:
    """Return a warning where other programs have taken processors that as many as *ranks* need, nothing elsewhere."""
    load, usable = machine["load_before"][0], machine["processors_usable"]
    if load + min(ranks, usable) <= usable + 0.5:
        return []
    return [
        f"The machine is busy: load {load} before the run, on {usable} processors. Other programs make these figures slower and less certain."
    ]


def time_text(microseconds: float) -> str:
    """Return *microseconds* with three digits that matter; all figures of a table are of this one unit."""
    if microseconds >= 10_000:
        return f"{microseconds:,.0f}"
    return f"{microseconds:.{0 if microseconds >= 100 else 1 if microseconds >= 10 else 2}f}"


def _floor_lines(record: Record) -> Iterator[str]:
    measured: dict[int, list[str]] = {}
    for result in record.results:
        if result.figures is None:
            continue
        told = measured.setdefault(result.case.ranks, [])
        if result.case.collective == LINE:
            told.append(f"a cache line there and back {result.figures.median * 1000:.0f} ns")
        elif result.case.collective in MEMORY_BYTES:
            rate = result.case.size / result.figures.median / 1000
            told.append(f"{result.case.collective} {rate:.1f} GB/s a rank")
    for ranks, told in measured.items():
        if told:
            yield f"floor of {ranks} ranks at once: {', '.join(told)}"


def _parts(cases: list[Case], comparison: Comparison, console: Console) -> Iterator[Table]:
    """Yield the table, or where *console* is narrower, tables of fewer contenders each; all have the sizes."""
    cell_of = {"ours": _our_cell, "peer": _cell, "floor": _floor_cell}
    columns = [
        (name, [make(comparison, case, name) for case in cases])
        for role, make in cell_of.items()
        for name in comparison.record.names(role)
    ]
    sizes = [size_text(case.size) if case.collective not in WITHOUT_SIZE else "" for case in cases]
    unbounded = console.options.update(width=_UNBOUNDED)
    begin = 0
    for end in range(1, len(columns) + 1):
        wider = columns[begin : end + 1]
        if end == len(columns) or console.measure(_table(sizes, wider), options=unbounded).maximum > console.width:
            yield _table(sizes, columns[begin:end])
            begin = end


def _table(sizes: Sequence[str], columns: Sequence[tuple[str, list[Text]]]) -> Table:
    table = Table(header_style="dim")
    table.add_column("size", justify="right", no_wrap=True)
    for name, _ in columns:
        table.add_column(name, justify="right")
    for row, size in enumerate(sizes):
        table.add_row(size, *(cells[row] for _, cells in columns))
    return table


def _cell(comparison: Comparison, case: Case, name: str) -> Text:
    result = comparison.result(case, name)
    if result is None:
        return Text("-", style="dim")
    if result.figures is None:
        return Text(result.status, style="red" if result.status == "failed" else "yellow")
    figures = result.figures
    spread = f"({time_text(figures.lower_quartile)}-{time_text(figures.upper_quartile)})"
    return Text.assemble(time_text(figures.median), "\n", (spread, "dim"))


def _our_cell(comparison: Comparison, case: Case, name: str) -> Text:
    cell, median = _cell(comparison, case, name), comparison.median(case, name)
    if median is None:
        return cell
    peer = comparison.best_peer(case)
    floors = [comparison.floor(case, kind) for kind in (TWO_COPIES, ONE_COPY)]
    if peer is not None:
        cell.append(f"\n{peer[0] / median:.2f} x peer", style="green" if peer[0] >= median else "red")
    if any(floors):
        told = " ".join(f"{median / floor:.2f}" if floor else "-" for floor in floors)
        cell.append(f"\n{told} x floor", style="dim")
    return cell


def _floor_cell(comparison: Comparison, case: Case, name: str) -> Text:
    floor = comparison.floor(case, name)
    return _cell(comparison, case, name) if floor is None else Text(time_text(floor))


def _overlaps(overlaps: list[Overlap]) -> Iterator[RenderableType]:
    measured = [one for one in overlaps if not one.reason]
    if not measured:
        return
    table = Table(title=f"{measured[0].case}, behind a matrix product", title_justify="left", title_style="bold")
    for head in ("", "all_reduce alone", "product alone", "rows", "both", "both / longer"):
        table.add_column(head, justify="right" if head else "left", header_style="dim")
    for one in measured:
        times = [time_text(time) for time in (one.communication, one.product)]
        table.add_row(one.contender, *times, str(one.side), time_text(one.together), f"{one.ratio:.2f}")
    yield Group(Text(), table)


def _notes(record: Record) -> Iterator[str]:
    """Say once why a contender has no figures, and for which cases."""
    for contender in record.contenders:
        if contender.missing:
            yield f"{contender.name}: {contender.missing}"
    reasons: dict[tuple[str, str, str], list[Result]] = {}
    for result in record.results:
        if result.figures is None:
            alike = re.sub(r"\d+", "N", result.reason)
            reasons.setdefault((result.contender, result.status, alike), []).append(result)
    for (name, status, _), results in reasons.items():
        cases = [result.case for result in results]
        collectives = ", ".join(dict.fromkeys(case.collective for case in cases))
        ranks = ", ".join(str(number) for number in sorted({case.ranks for case in cases}))
        dtypes = ", ".join(dict.fromkeys(case.dtype for case in cases))
        number = f"{len(cases)} case{'s' * (len(cases) != 1)}"
        yield f"{name} {status} {collectives} ({ranks} ranks; {dtypes}; {number}): {results[0].reason}"
    for overlap in record.overlaps:
        if overlap.reason:
            yield f"{overlap.contender} has no overlap: {overlap.reason}"


_COMPARED = {"torch": TWO_COPIES, "torch-shared": ONE_COPY}  # ours, and the floor of what they do


def markdown_of(record: Record) -> str:
    """Return the page: medians in microseconds; behind them, how many times as fast as the best peer ours are, and how many times the floor they take."""
    comparison = Comparison(record)
    lines = [*(f"- {line}" for line in machine_lines(record)), ""]
    for (collective, ranks, dtype), cases in series(record).items():
        kind = "" if collective in WITHOUT_SIZE else f", {dtype}"
        lines += [f"### {collective}, {ranks} ranks{kind}", "", *_markdown_table(cases, comparison), ""]
    return "\n".join(lines)


def _markdown_table(cases: list[Case], comparison: Comparison) -> Iterator[str]:
    record = comparison.record
    ours, peers, floors = (record.names(role) for role in ("ours", "peer", "floor"))
    compared = [name for name in ours if name in _COMPARED]
    yield _markdown_row(
        ["size", *ours, *peers, *floors, *(f"{name} x {of}" for name in compared for of in ("peer", "floor"))]
    )
    yield _markdown_row(["---", *["---:"] * (len(ours) + len(peers) + len(floors) + 2 * len(compared))])
    for case in cases:
        cells = [size_text(case.size) if case.collective not in WITHOUT_SIZE else ""]
        cells += [_figure(comparison, case, name) for name in (*ours, *peers)]
        cells += [_time(comparison.floor(case, name)) for name in floors]
        for name in compared:
            median, peer = comparison.median(case, name), comparison.best_peer(case)
            cells += [_ratio(peer[0] if peer else None, median)]
            cells += [_ratio(median, comparison.floor(case, _COMPARED[name]))]
        yield _markdown_row(cells)


def _figure(comparison: Comparison, case: Case, name: str) -> str:
    result = comparison.result(case, name)
    return result.status if result is not None and result.figures is None else _time(comparison.median(case, name))


def _time(microseconds: float | None) -> str:
    return "" if microseconds is None else time_text(microseconds)


def _ratio(time: float | None, of: float | None) -> str:
    return f"{time / of:.2f}" if time is not None and of else ""


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
