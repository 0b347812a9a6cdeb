"""The matrix as Markdown: counts, what is to be known of single examples, and the whole table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shim.conformance.examples.judging.verdicts import Verdict
from shim.conformance.matrix.cells import Column, Matrix, Row

_WELL = (Verdict.PASS, Verdict.RAN)


def as_markdown(matrix: Matrix) -> str:
    """Return *matrix* as a page of Markdown, as build servers show it."""
    lines = ["# Documented examples, executed", "", "Passed." if matrix.passed else "**Not passed.**", ""]
    lines += _counts(matrix)
    lines += _remarks(matrix)
    lines += ["## Every example", ""]
    columns = matrix.columns
    lines += _table(["example", "ranks", *(column.title for column in columns)], _rows(matrix, columns))
    return "\n".join(lines) + "\n"


def _counts(matrix: Matrix) -> list[str]:
    verdicts = [verdict for verdict in Verdict if any(subject.counts.get(verdict) for subject in matrix.subjects)]
    rows = [
        [
            _plain(each.title),
            each.on,
            each.found,
            each.run,
            *(each.counts.get(v, 0) for v in verdicts),
        ]
        for each in matrix.subjects
    ]
    heads = ["framework", "on", "examples", "run", *(verdict.value for verdict in verdicts)]
    unseen = [f"- {_code(name)}: on record and not run" for subject in matrix.subjects for name in subject.unseen]
    absent = [f"- {name}: not installed{', and asked for' * (name in matrix.missing)}" for name in matrix.absent]
    return [*_table(heads, rows), *unseen, *absent, *([""] if unseen or absent else [])]


def _remarks(matrix: Matrix) -> Iterator[str]:
    by_verdict: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict if verdict not in _WELL}
    changes = []
    for row, column, cell in matrix.cells():
        place = f"{_code(row.name)} ({column.title})"
        if cell.verdict not in (*_WELL, Verdict.NOT_APPLICABLE):
            text = cell.reason or "; ".join(failure.summary for failure in cell.failures)
            by_verdict[cell.verdict].append(f"- {place}: {_plain(text)}")
        if cell.change is not None:
            changes.append(f"- {place}: {_plain(cell.change)}")
    for (kind, reason), count in matrix.inapplicable.items():
        by_verdict[Verdict.NOT_APPLICABLE].append(f"- {count} with {kind} tensors: {_plain(reason)}")
    for verdict, lines in by_verdict.items():
        if lines:
            yield from (f"## {verdict.value.capitalize()}", "", *lines, "")
    if changes:
        yield from ("## Not as recorded", "", *changes, "")


def _rows(matrix: Matrix, columns: Sequence[Column]) -> Iterator[list[object]]:
    for row in matrix.rows:
        yield [_code(row.name), row.ranks, *(_verdict(row, column) for column in columns)]


def _verdict(row: Row, column: Column) -> str:
    return row.cells[column].verdict.value if column in row.cells else ""


def _table(heads: Sequence[str], rows: Iterator[list[object]] | list[list[object]]) -> list[str]:
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return [*lines, ""]


def _code(name: str) -> str:
    return f"`{name}`"


def _plain(text: object) -> str:
    """Return *text* on one line and without meaning to Markdown."""
    return re.sub(r"([\\`*_<>\[\]|])", r"\\\1", " ".join(str(text).split()))
