"""Tells what became of the documents' cases, and of the tables' cells beside what is recorded of the frameworks."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill, indent

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shim.conformance.documents.case import Case, Document
from shim.conformance.kinds import KINDS
from shim.conformance.progress import first_that_fits, fits
from shim.conformance.runner import Failure, Result, Run
from shim.conformance.tables.cells import SIZE, TABLES, Cell
from shim.conformance.tables.cells import Table as TableOfCells

_MOST_FAILURES = 12  # different ones that are printed
_SHOWN = 27  # columns, with their frame, in which what a case shows can be read
_MOST_PLACES = 4  # that a failure is said to have happened at, besides the first
_HOW_TO_READ = "here, with which tensors if not the framework's own (and in the framework itself)"


def print_report(run: Run[Case], pages: Sequence[Document], console: Console) -> None:
    """Print the table, the notes on documents that are wrong, the failures in full, and one line that sums up."""
    console.print(Text("Five documents' cases, run on this machine", style="bold"))
    console.print(_results_table(run, pages, console))
    _print_notes(pages, console)
    _print_failures(run, console, "; --json writes all of them")
    console.print(_summary_of_cases(run, len(pages)))


def _results_table(run: Run[Case], pages: Sequence[Document], console: Console) -> Table:
    """Return what became of each document with each kind of tensor: a column for each, or where these have no room, a line."""
    names = [page.name for page in pages]
    folded = [".\n  ".join(name.rsplit(".", 1)) for name in names]
    kinds = _kinds(run)
    versions = [f"{kind} {run.versions.get(kind, '')}".rstrip() for kind in kinds]
    columns = _by_columns(run, pages, names, versions), _by_columns(run, pages, folded, versions)
    return first_that_fits(
        console, *columns, _by_lines(run, pages, folded, versions), _by_lines(run, pages, folded, kinds)
    )


def _kinds(run: Run[Case]) -> list[str]:
    """Return the kinds of tensor that the table tells of."""
    return [kind for kind in KINDS if kind in (*run.selection.present, *run.selection.missing, *run.selection.absent)]


def _by_columns(run: Run[Case], pages: Sequence[Document], names: Sequence[str], kinds: Sequence[str]) -> Table:
    table = Table("document")
    for kind in kinds:
        table.add_column(Text(kind.replace(" ", "\n")), justify="center")
    for page, name in zip(pages, names, strict=True):
        table.add_row(Text(name), *(_cell(run, page, kind) for kind in _kinds(run)))
    return table


def _by_lines(run: Run[Case], pages: Sequence[Document], names: Sequence[str], kinds: Sequence[str]) -> Table:
    table = Table("document", "tensors", "cases", show_lines=True)
    for page, name in zip(pages, names, strict=True):
        cells = Text("\n").join(_cell(run, page, kind) for kind in _kinds(run))
        table.add_row(Text(name), Text("\n".join(kinds)), cells)
    return table


def _cell(run: Run[Case], page: Document, kind: str) -> Text:
    if kind in run.selection.missing:
        return Text("missing", style="bold red")
    if kind in run.selection.absent:
        return Text("not installed", style="dim")
    results = [result for result in run.results if (result.subject.document, result.kind) == (page.name, kind)]
    passed = sum(result.passed for result in results)
    if passed == len(results):
        return Text(f"{passed} passed", style="green")
    return Text(f"{passed} of {len(results)} passed", style="bold red")


def _print_notes(documents: Sequence[Document], console: Console) -> None:
    console.print(Text("\nWhere the documents are wrong, or hold for one version only", style="bold"))
    for page in documents:
        console.print(Text(page.name), soft_wrap=True)
        for note in page.notes:
            for line in (f"says: {note.says}", f"true: {note.true} (case {note.case!r})"):
                lines = fill(line, console.width, initial_indent="  ", subsequent_indent="        ")
                console.print(Text(lines), soft_wrap=True)
    console.print()


def _print_failures(run: Run[Case] | Run[Cell], console: Console, rest: str) -> None:
    """Print every different failure once, in full, with the places where it happened; *rest* ends the line on those that are not printed."""
    for kind in run.selection.missing:
        console.print(Text(f"\nmissing: {kind} was asked for and is not installed", style="bold red"))
    places: dict[str, list[str]] = {}
    for result in run.results:
        ranks: dict[str, list[int]] = {}
        for failure in result.failures:
            ranks.setdefault(_failure(failure), []).append(failure.rank)
        for text, on in ranks.items():
            where = f"rank{'s' * (len(on) > 1)} {', '.join(map(str, on))} of {result.subject.ranks}"
            places.setdefault(text, []).append(f"{result.subject.place}, {result.kind} tensors, {where}")
    for text, (first, *others) in list(places.items())[:_MOST_FAILURES]:
        console.print(Text(f"\nfailed: {first}", style="bold red"), soft_wrap=True)
        console.print(Text(indent(text, "  ")), soft_wrap=True)
        for place in others[:_MOST_PLACES]:
            console.print(Text(f"the same in {place}"), soft_wrap=True)
        if others[_MOST_PLACES:]:
            console.print(Text(f"and in {len(others) - _MOST_PLACES} more places"))
    if len(places) > _MOST_FAILURES:
        console.print(Text(f"\nand {len(places) - _MOST_FAILURES} other failures{rest}"))


def _failure(failure: Failure) -> str:
    if failure.against == "call":
        return failure.details.strip()
    against = "the document" if failure.against == "documented" else "the oracle"
    return f"against {against}: {failure.details}\nexpected: {failure.expected}\nseen:     {failure.seen}"


def _summary_of_cases(run: Run[Case], pages: int) -> Text:
    failed = sum(not result.passed for result in run.results)
    kinds = ", ".join(run.selection.present) or "no kind of tensor"
    count = f"{pages} document{'s' if pages != 1 else ''}"
    if run.passed:
        text = f"{count}, {len(run.results)} runs of cases, all passed with {kinds}, in {run.seconds:.1f} s."
        return Text(text, style="bold green")
    missing = f", {', '.join(run.selection.missing)} missing" if run.selection.missing else ""
    text = (
        f"{count}, {failed} of {len(run.results)} runs of cases failed with {kinds}{missing}, in {run.seconds:.1f} s."
    )
    return Text(text, style="bold red")


def print_cases(documents: Sequence[Document], console: Console, chosen: Sequence[str] | None = None) -> None:
    """Print the cases of *documents*, with where each document is found and what it describes; with *chosen* kinds of tensor, those for these."""
    for page in documents:
        cases = [case for case in page.cases if chosen is None or any(map(case.is_for, chosen))]
        if not cases:
            continue
        console.print(Text(page.name, style="bold"), soft_wrap=True)
        console.print(Text(f"{page.version}\n{page.source}"), soft_wrap=True)
        rows = [(case.name, str(case.ranks), case.collective, _tensors(case, chosen)) for case in cases]
        if fits(_table_of(rows), console, besides=_SHOWN):
            console.print(_table_of(rows, [case.shows for case in cases]))
            continue
        for case, (name, ranks, collective, tensors) in zip(cases, rows, strict=True):
            told = f"ranks: {ranks}; collective: {collective}; tensors: {tensors}; shows: {case.shows}"
            console.print(Text(f"{name}\n  {told}"), soft_wrap=True)


def _table_of(rows: Sequence[tuple[str, ...]], shown: Sequence[str] = ()) -> Table:
    """Return the table of cases, of which nothing is folded but what they show, where this is in it."""
    table = Table()
    for head in ("case", "ranks", "collective", "tensors"):
        table.add_column(head, no_wrap=True)
    if shown:
        table.add_column("shows")
    for index, row in enumerate(rows):
        table.add_row(*map(Text, (*row, *shown[index : index + 1])))
    return table


def _tensors(case: Case, chosen: Sequence[str] | None) -> str:
    kinds = case.kinds if chosen is None else [kind for kind in chosen if case.is_for(kind)]
    return ", ".join(kinds) or "all"


def print_tables(run: Run[Cell], console: Console) -> None:
    """Print the tables, the failures in full, and one line that sums up."""
    results = {result.subject.name: result for result in run.results}
    for table in TABLES:
        of_table = [cell for cell in run.subjects if cell.table == table.name]
        if of_table:
            console.print(Text(f"{table.title}: {_HOW_TO_READ}", style="bold"))
            console.print(_as_grid(table, of_table, results))
            console.print()
    _print_failures(run, console, "")
    console.print(_summary_of_cells(run), soft_wrap=True)


def _as_grid(table: TableOfCells, of_table: Sequence[Cell], results: dict[str, Result[Cell]]) -> Table:
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


def _told(cell: Cell, result: Result[Cell] | None) -> Text:
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


def _summary_of_cells(run: Run[Cell]) -> Text:
    failed = sum(not result.passed for result in run.results)
    calls = sum(min((sight.checks for sight in result.seen.values()), default=0) for result in run.results)
    absent = sum(cell.call is None for cell in run.subjects)
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
