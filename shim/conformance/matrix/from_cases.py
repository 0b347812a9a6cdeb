"""Rows of the matrix from the five documents' cases, which run with every kind of tensor."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from shim.conformance.documents.case import Case, Document, as_text
from shim.conformance.examples.judging.verdicts import Judgement, Verdict
from shim.conformance.examples.sides import REFERENCE, SHIM
from shim.conformance.examples.suite import CASE, SourceRun
from shim.conformance.matrix.cells import Cell, Column, Failure, Row, Seen, engine_in_use
from shim.conformance.matrix.from_examples import cell_of, failures_of
from shim.conformance.runner import Result, Run


def rows_of_cases(pages: Sequence[Document], run: Run[Case], on_frameworks: Sequence[SourceRun] = ()) -> list[Row]:
    """Return one row for each case, with a cell for every kind of tensor that it was run with, and for the framework itself."""
    judged = {each.outcome.example.name: each for of_one in on_frameworks for each in of_one.judgements}
    results: dict[str, list[Result[Case]]] = {}
    for result in run.results:
        results.setdefault(result.subject.title, []).append(result)
    return [
        _row(page, case, results[case.title], judged.get(case.title))
        for page in pages
        for case in page.cases
        if case.title in results
    ]


def _row(page: Document, case: Case, results: Sequence[Result[Case]], itself: Judgement | None) -> Row:
    code = _code(case)
    last = code[-1][0] if code else 0
    cells = {Column(SHIM, result.kind, engine_in_use()): _cell(case, result, last) for result in results}
    if itself is not None:
        cells[Column(REFERENCE, "", "")] = cell_of(itself)
    notes = tuple(
        f"The document says: {note.says} What is true: {note.true}" for note in page.notes if note.case == case.name
    )
    return Row(case.title, page.framework, CASE, page.source, case.ranks, code, cells, notes)


def _code(case: Case) -> tuple[tuple[int, str], ...]:
    lines, _ = inspect.getsourcelines(case.call)
    return tuple((number, line.rstrip("\n")) for number, line in enumerate(lines, start=1))


def _cell(case: Case, result: Result[Case], line: int) -> Cell:
    expected = case.documented or case.computed
    by_rank = {failure.rank: failure for failure in result.failures if failure.against != "call"}
    seen = tuple(
        Seen(
            line, (rank,), as_text(expected[rank]), as_text(arrays), by_rank[rank].details if rank in by_rank else None
        )
        for rank, arrays in sorted(result.seen.items())
    )
    return Cell(Verdict.PASS if result.passed else Verdict.FAIL, result.seconds, seen=seen, failures=_failures(result))


def _failures(result: Result[Case]) -> tuple[Failure, ...]:
    against = {"documented": "against the document: ", "oracle": "against the oracle: ", "call": ""}
    return failures_of(
        [(failure.rank, 0, f"{against[failure.against]}{failure.details}") for failure in result.failures]
    )
