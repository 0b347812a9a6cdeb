"""Tell what the tables' cells came to, beside what is recorded of the frameworks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import indent

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from shim.conformance.kinds import Selection
from shim.conformance.tables import cells
from shim.conformance.tables.cells import Cell
from shim.conformance.tables.runner import SIZE, CellResult, TablesRun, planned

_MOST_FAILURES = 12  # different ones that are printed
_HOW_TO_READ = "here, with which tensors if not the framework's own (and in the framework itself)"
_MOST_PLACES = 4  # that a failure is said to have happened at, besides the first


@contextmanager
def progress_of(
    all_cells: Sequence[Cell], selection: Selection, console: Console
) -> Iterator[Callable[[CellResult], None]]:
    """Show a bar while the cells run, or where output is no terminal, a line for every kind of tensor.

    The value is a function to be called with every result.
    """
    totals = {kind: len(of_kind) for kind, of_kind in planned(all_cells, selection).items()}
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=sum(totals.values()))
        counts = dict.fromkeys(totals, 0)

        def tell(result: CellResult) -> None:
            counts[result.kind] += 1
            bar.update(task, advance=1, description=f"{result.kind} tensors: {result.cell.name}")
            if counts[result.kind] == totals[result.kind] and not console.is_terminal:
                console.print(f"{result.kind} tensors: {totals[result.kind]} cells run")

        yield tell


def print_tables(run: TablesRun, console: Console) -> None:
    """Print the tables, the failures in full, and one line that sums up."""
    results = {result.cell.name: result for result in run.results}
    for table in cells.TABLES:
        of_table = [cell for cell in run.cells if cell.table == table.name]
        if of_table:
            console.print(Text(f"{table.title}: {_HOW_TO_READ}", style="bold"))
            console.print(_as_grid(table, of_table, results))
            console.print()
    _print_failures(run, console)
    console.print(_summary(run), soft_wrap=True)


def _as_grid(table: cells.Table, of_table: Sequence[Cell], results: dict[str, CellResult]) -> Table:
    columns = list({cell.column.name: cell.column for cell in of_table}.values())
    grid = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)
    grid.add_column(table.name.removesuffix("s"), width=max(map(len, " ".join(table.rows).split())))
    for column in columns:
        grid.add_column(Text(f"{column.name.replace('.', '.' + chr(10))}\n{column.real}"), overflow="fold")
    by_place = {(cell.row, cell.column.name): cell for cell in of_table}
    for row in table.rows:
        here = [by_place.get((row, column.name)) for column in columns]
        grid.add_row(row, *("" if cell is None else _told(cell, results.get(cell.name)) for cell in here))
    return grid


def _told(cell: Cell, result: CellResult | None) -> Text:
    if cell.call is None:
        return Text(cell.real, style="dim")
    if result is None:
        ours = Text("not run", style="yellow")
    elif not result.passed:
        ours = Text("FAILED", style="bold red")
    else:
        with_what = "" if result.kind == cell.column.kind else f", {result.kind}"
        ours = Text(f"{cell.says}{with_what}", style="green")
    return Text.assemble(ours, Text(f"\n({cell.real})", style="dim"))


def _print_failures(run: TablesRun, console: Console) -> None:
    """Print every different failure once, with the cells and ranks where it happened."""
    for kind in run.selection.missing:
        console.print(Text(f"\nmissing: {kind} was asked for and is not installed", style="bold red"))
    places: dict[str, list[str]] = {}
    for result in run.results:
        for error, ranks in _alike(result.errors).items():
            place = f"{result.cell.name}, {result.kind} tensors, {ranks} of {SIZE}"
            places.setdefault(error, []).append(place)
    for error, (first, *others) in list(places.items())[:_MOST_FAILURES]:
        console.print(Text(f"\nfailed: {first}", style="bold red"), soft_wrap=True)
        console.print(Text(indent(error, "  ")), soft_wrap=True)
        for place in others[:_MOST_PLACES]:
            console.print(Text(f"the same in {place}"), soft_wrap=True)
        if others[_MOST_PLACES:]:
            console.print(Text(f"and in {len(others) - _MOST_PLACES} more places"))
    if len(places) > _MOST_FAILURES:
        console.print(Text(f"\nand {len(places) - _MOST_FAILURES} other failures"))


def _alike(errors: Sequence[tuple[int, str]]) -> dict[str, str]:
    """Return the different errors of a cell, each with the ranks that it happened on."""
    ranks: dict[str, list[int]] = {}
    for rank, error in errors:
        ranks.setdefault(error.strip(), []).append(rank)
    return {error: f"rank{'s' * (len(on) > 1)} {', '.join(map(str, on))}" for error, on in ranks.items()}


def _summary(run: TablesRun) -> Text:
    failed = sum(not result.passed for result in run.results)
    calls = sum(result.checks for result in run.results)
    absent = sum(cell.call is None for cell in run.cells)
    parts = [f"{len(run.results)} cells, {calls} calls checked on each of {SIZE} ranks"]
    parts.append(f"{failed} failed" if failed else "all of these as they should be")
    if run.not_run:
        parts.append(f"{run.not_run} not run, because the tensors at hand have no such dtype")
    if absent:
        parts.append(f"{absent} n/a")
    parts += [f"{kind} missing" for kind in run.selection.missing]
    narrowed = run.selection.narrowed
    begin = f"partial, with {', '.join(run.selection.present)} tensors alone: " if narrowed else ""
    style = "bold red" if not run.passed else "bold yellow" if narrowed else "bold green"
    return Text(f"{begin}{', '.join(parts)}, in {run.seconds:.1f} s.", style=style)
