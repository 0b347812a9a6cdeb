"""The matrix in a terminal: counts, what does not pass and why, and on demand every example."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from textwrap import indent

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shim.conformance.examples.judging import Verdict
from shim.conformance.examples.suite import CASE, FILE, REFERENCE, SHIM
from shim.conformance.matrix.cells import Cell, Column, Matrix, Row, Subject
from shim.conformance.progress import first_that_fits, fits

STYLES = {
    Verdict.PASS: "green",
    Verdict.RAN: "green",
    Verdict.FAIL: "bold red",
    Verdict.DOCUMENT_WRONG: "yellow",
    Verdict.NOT_RUNNABLE: "cyan",
    Verdict.NOT_APPLICABLE: "dim",
    Verdict.UNSUPPORTED: "cyan",
    Verdict.CRASHES: "magenta",
    Verdict.HANGS: "magenta",
}
_ALWAYS = (Verdict.PASS, Verdict.DOCUMENT_WRONG, Verdict.NOT_RUNNABLE, Verdict.FAIL)
_FEW = 3  # examples up to which a reason stands after their names
_IN_FULL = 3  # failed cells up to which tracebacks are printed whole


def counts_table(subjects: Iterable[Subject], console: Console) -> Table:
    """Return the table of counts, a line for each framework and side, in the form that *console* has room for."""
    subjects = list(subjects)
    return first_that_fits(
        console,
        _by_columns(subjects, str),
        _by_columns(subjects, lambda head: head.replace(" ", "\n")),
        _in_words(subjects),
    )


def _by_columns(subjects: Sequence[Subject], fold: Callable[[str], str]) -> Table:
    """Return the table with columns for the usual verdicts, and for others as they occur; *fold* gives its words their lines."""
    others = [each for each in Verdict if each not in _ALWAYS and any(subject.counts.get(each) for subject in subjects)]
    sides = any(subject.on != SHIM for subject in subjects)
    table = Table("framework")
    if sides:
        table.add_column("on")
    for head in ("examples", "run", *(verdict.value for verdict in (*_ALWAYS, *others))):
        table.add_column(fold(head), justify="right")
    for subject in subjects:
        counts = [_count(subject.counts.get(verdict, 0), verdict) for verdict in (*_ALWAYS, *others)]
        side = [Text(fold(subject.on))] if sides else []
        table.add_row(Text(fold(subject.title)), *side, str(subject.found), str(subject.run), *counts)
    return table


def _in_words(subjects: Sequence[Subject]) -> Table:
    """Return the table with the counts as words, one below the other."""
    sides = any(subject.on != SHIM for subject in subjects)
    table = Table("framework", "run", "verdicts", show_lines=True)
    for subject in subjects:
        title = f"{subject.title}\n{subject.on}" if sides else subject.title
        counts = [
            Text(f"{subject.counts[verdict]} {verdict.value}", style=STYLES[verdict])
            for verdict in Verdict
            if subject.counts.get(verdict)
        ]
        table.add_row(Text(title), f"{subject.run} of {subject.found}", Text("\n").join(counts))
    return table


def _count(count: int, verdict: Verdict) -> Text:
    return Text(str(count), style=STYLES[verdict] if count else "dim")


def print_matrix(matrix: Matrix, console: Console, every: bool = False) -> None:
    """Print counts, reasons and failures, with *every* also each example's verdicts, and a line that sums up."""
    if every:
        print_rows(matrix, console)
    of_files = any(row.kind == FILE for row in matrix.rows)
    if matrix.subjects:
        whose = "The files' examples" if of_files else "The frameworks' own examples"
        console.print(Text(f"{whose}, run on this machine", style="bold"))
        console.print(counts_table(matrix.subjects, console))
    for subject in matrix.subjects:
        if not subject.recorded and not of_files:
            text = f"{subject.title}: no verdicts are on record of {subject.on}, these are this run's"
            console.print(Text(text, style="dim"))
    for name in matrix.absent:
        asked = name in matrix.missing
        text = (
            f"{name}: asked for and not installed" if asked else f"{name}: not installed, its examples cannot be read"
        )
        console.print(Text(text, style="bold red" if asked else "dim"))
    for verdict in Verdict:
        if verdict is Verdict.NOT_APPLICABLE:
            _print_inapplicable(matrix, console)
        elif verdict not in (Verdict.PASS, Verdict.RAN):
            _print_reasons(matrix, verdict, console)
    _print_failures(matrix, console)
    for row in matrix.rows:
        if row.kind == FILE:
            for note in row.notes:
                console.print(Text(f"\n{row.name}: {note}", style="yellow"), soft_wrap=True)
    _print_changes(matrix, console)
    console.print(_summary(matrix), soft_wrap=True)


def print_rows(matrix: Matrix, console: Console) -> None:
    """Print each example with its verdict in each column: a line of a table, or where that has no room, a paragraph."""
    table = Table("example", "ranks")
    for column in matrix.columns:
        table.add_column(Text(_head(column)), justify="center")
    for row in matrix.rows:
        table.add_row(Text(row.name), str(row.ranks), *(_verdict(row, column) for column in matrix.columns))
    if fits(table, console):
        console.print(table)
        return
    for row in matrix.rows:
        console.print(Text(f"{row.name} ({_number(row.ranks, 'rank')})"), soft_wrap=True)
        for column in matrix.columns:
            if column in row.cells:
                console.print(Text(f"  {column.title}: ") + _verdict(row, column), soft_wrap=True)
    console.print()


def _head(column: Column) -> str:
    return "itself" if column.side == REFERENCE else f"shim\n{column.tensors}\n{column.engine}"


def _verdict(row: Row, column: Column) -> Text:
    cell = row.cells.get(column)
    return Text("") if cell is None else Text(cell.verdict.value, style=STYLES[cell.verdict])


def _places(matrix: Matrix, verdict: Verdict) -> list[tuple[Row, Column, Cell]]:
    """Return the places with *verdict*; what becomes of cases on the frontends ``shim.conformance.report`` tells."""
    told_elsewhere = {(CASE, SHIM)}
    return [
        (row, column, cell)
        for row, column, cell in matrix.cells()
        if cell.verdict is verdict and (row.kind, column.side) not in told_elsewhere
    ]


def _print_reasons(matrix: Matrix, verdict: Verdict, console: Console) -> None:
    places = [place for place in _places(matrix, verdict) if not _has_failed(*place)]
    if places:
        console.print(Text(f"\n{verdict.value.capitalize()}", style=STYLES[verdict]))
    told: dict[str, dict[str, list[Column]]] = {}
    for row, column, cell in places:
        told.setdefault(cell.reason, {}).setdefault(row.name, []).append(column)
    rows = {row.name: row for row, _, _ in places}
    for reason, names in told.items():
        which = [
            str(_place(rows[name], columns[0], "")) if len(columns) == 1 else f"{name} ({_where(columns)})"
            for name, columns in names.items()
        ]
        text = f"{', '.join(which)}: {reason}" if len(which) <= _FEW else f"{len(which)} examples: {reason}"
        console.print(Text(text), soft_wrap=True)
        if len(which) > _FEW:
            console.print(Text(indent(", ".join(names), "  ")), soft_wrap=True)


def _has_failed(row: Row, column: Column, cell: Cell) -> bool:
    """Tell whether a cell is a failure to be told in full: on the frontends, or where nothing is on record of it."""
    return cell.verdict is Verdict.FAIL and (column.side == SHIM or cell.change is not None or not cell.reason)


def _where(columns: Sequence[Column]) -> str:
    kinds = [column.tensors for column in columns if column.side == SHIM]
    itself = len(kinds) < len(columns)
    if itself and len(kinds) == 1:
        return "both"
    return f"shim with {', '.join(kinds)}{', and framework itself' * itself}"


def _print_inapplicable(matrix: Matrix, console: Console) -> None:
    """Print how many examples do not go with kinds of tensor, by reason; ``--every`` and the files name each."""
    if matrix.inapplicable:
        console.print(Text("\nNot applicable", style=STYLES[Verdict.NOT_APPLICABLE]))
    for (kind, reason), count in matrix.inapplicable.items():
        console.print(Text(f"{_number(count, 'example')} with {kind} tensors: {reason}"), soft_wrap=True)


def _print_failures(matrix: Matrix, console: Console) -> None:
    places = [place for place in _places(matrix, Verdict.FAIL) if _has_failed(*place)]
    for row, column, cell in places:
        console.print(Text("\nfailed: ", style="bold red") + _place(row, column, ""), soft_wrap=True)
        for failure in cell.failures:
            console.print(Text(f"  {failure.summary}"), soft_wrap=True)
            if len(places) <= _IN_FULL and "\n" in failure.text.strip():
                console.print(Text(indent(failure.text.strip(), "    ")), soft_wrap=True)
    if len(places) > _IN_FULL:
        console.print(Text("\n--html and --json tell of each failure in full, and so does running few with --example"))


def _print_changes(matrix: Matrix, console: Console) -> None:
    changed = [(row, column, cell.change) for row, column, cell in matrix.cells() if cell.change is not None]
    unseen = [(subject, name) for subject in matrix.subjects for name in subject.unseen]
    if changed or unseen:
        console.print(Text("\nNot as recorded", style="bold"))
    for row, column, change in changed:
        console.print(_place(row, column, f" {change}"), soft_wrap=True)
    for subject, name in unseen:
        console.print(Text(f"{name}: on record for {subject.on}, not run"), soft_wrap=True)


def _place(row: Row, column: Column, rest: str) -> Text:
    where = "" if column.side == SHIM and column.tensors == row.framework else f" ({column.title})"
    return Text(f"{row.name}{where}{rest}")


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"


def _summary(matrix: Matrix) -> Text:
    cells = sum(matrix.counts.values())
    parts = [f"{_number(len(matrix.rows), 'example')}, {_number(cells, 'verdict')}"]
    parts += [f"{count} {verdict.value}" for verdict, count in sorted(matrix.counts.items(), key=lambda item: -item[1])]
    parts += [f"{len(matrix.missing)} missing"] if matrix.missing else []
    text = f"\n{', '.join(parts)}, in {matrix.seconds:.1f} s: {'passed' if matrix.passed else 'not passed'}."
    return Text(text, style="bold green" if matrix.passed else "bold red")
