"""Tell what became of the documents' cases: as they run, and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from textwrap import fill, indent
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from shim.conformance.documents.case import Case, Document
from shim.conformance.documents.runner import Failure, Result, Run
from shim.conformance.forms import first_that_fits, fits
from shim.conformance.kinds import KINDS, Selection

_MOST_FAILURES = 12  # different ones that are printed
_SHOWN = 27  # columns, with their frame, in which what a case shows can be read
_MOST_PLACES = 4  # that a failure is said to have happened at, besides the first


class _Told(Protocol):
    def __call__(self, result: Result) -> None: ...


@contextmanager
def progress_of(documents: Sequence[Document], selection: Selection, console: Console) -> Iterator[_Told]:
    """Show a bar while a run goes on, or where output is no terminal, a line for every kind of tensor.

    The value is a function to be called with every result.
    """
    totals = {kind: sum(case.is_for(kind) for page in documents for case in page.cases) for kind in selection.present}
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=sum(totals.values()))
        counts = dict.fromkeys(totals, 0)

        def tell(result: Result) -> None:
            counts[result.kind] += 1
            bar.update(task, advance=1, description=f"{result.kind}: {result.document}")
            if counts[result.kind] == totals[result.kind] and not console.is_terminal:
                console.print(f"{result.kind}: {totals[result.kind]} cases run")

        yield tell


def print_report(run: Run, console: Console) -> None:
    """Print the table, the notes on documents that are wrong, the failures in full, and one line that sums up."""
    console.print(Text("Five documents' cases, run on this machine", style="bold"))
    console.print(_results_table(run, console))
    _print_notes(run.documents, console)
    _print_failures(run, console)
    console.print(_summary(run))


def _results_table(run: Run, console: Console) -> Table:
    """Return what became of each document with each kind of tensor: a column for each, or where these have no room, a line."""
    names = [page.name for page in run.documents]
    folded = [".\n  ".join(name.rsplit(".", 1)) for name in names]
    kinds = _kinds(run)
    versions = [f"{kind} {run.versions.get(kind, '')}".rstrip() for kind in kinds]
    columns = _by_columns(run, names, versions), _by_columns(run, folded, versions)
    return first_that_fits(console, *columns, _by_lines(run, folded, versions), _by_lines(run, folded, kinds))


def _kinds(run: Run) -> list[str]:
    """Return the kinds of tensor that the table tells of."""
    return [kind for kind in KINDS if kind in (*run.selection.present, *run.selection.missing, *run.selection.absent)]


def _by_columns(run: Run, names: Sequence[str], kinds: Sequence[str]) -> Table:
    table = Table("document")
    for kind in kinds:
        table.add_column(Text(kind.replace(" ", "\n")), justify="center")
    for page, name in zip(run.documents, names, strict=True):
        table.add_row(Text(name), *(_cell(run, page, kind) for kind in _kinds(run)))
    return table


def _by_lines(run: Run, names: Sequence[str], kinds: Sequence[str]) -> Table:
    table = Table("document", "tensors", "cases", show_lines=True)
    for page, name in zip(run.documents, names, strict=True):
        cells = Text("\n").join(_cell(run, page, kind) for kind in _kinds(run))
        table.add_row(Text(name), Text("\n".join(kinds)), cells)
    return table


def _cell(run: Run, page: Document, kind: str) -> Text:
    if kind in run.selection.missing:
        return Text("missing", style="bold red")
    if kind in run.selection.absent:
        return Text("not installed", style="dim")
    results = run.results_of(page, kind)
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


def _print_failures(run: Run, console: Console) -> None:
    """Print every different failure once, in full, with the places where it happened."""
    for kind in run.selection.missing:
        console.print(Text(f"\nmissing: {kind} was asked for and is not installed", style="bold red"))
    places: dict[str, list[str]] = {}
    for result in run.results:
        for ranks, failure in _alike(result.failures):
            place = f"{result.document}, case {result.case!r}, {result.kind} tensors, {ranks} of {result.ranks}"
            places.setdefault(_failure(failure), []).append(place)
    for text, (first, *others) in list(places.items())[:_MOST_FAILURES]:
        console.print(Text(f"\nfailed: {first}", style="bold red"), soft_wrap=True)
        console.print(Text(indent(text, "  ")), soft_wrap=True)
        for place in others[:_MOST_PLACES]:
            console.print(Text(f"the same in {place}"), soft_wrap=True)
        if others[_MOST_PLACES:]:
            console.print(Text(f"and in {len(others) - _MOST_PLACES} more places"))
    if len(places) > _MOST_FAILURES:
        console.print(Text(f"\nand {len(places) - _MOST_FAILURES} other failures; --json writes all of them"))


def _alike(failures: Sequence[Failure]) -> list[tuple[str, Failure]]:
    """Return failures that differ by more than the rank, each with the ranks that it happened on."""
    ranks: dict[Failure, list[int]] = {}
    for failure in failures:
        ranks.setdefault(replace(failure, rank=-1), []).append(failure.rank)
    return [(f"rank{'s' * (len(on) > 1)} {', '.join(map(str, on))}", failure) for failure, on in ranks.items()]


def _failure(failure: Failure) -> str:
    if failure.against == "call":
        return failure.details.strip()
    against = "the document" if failure.against == "documented" else "the oracle"
    return f"against {against}: {failure.details}\nexpected: {failure.expected}\nseen:     {failure.seen}"


def _summary(run: Run) -> Text:
    failed = sum(not result.passed for result in run.results)
    kinds = ", ".join(run.selection.present) or "no kind of tensor"
    count = f"{len(run.documents)} document{'s' if len(run.documents) != 1 else ''}"
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
