"""Rows of the matrix: the frameworks' own examples, as they were judged on each side and with each kind of tensor, and the five documents' cases."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace

from shim.conformance.documents.case import Case, Document, as_text
from shim.conformance.examples.example import Example, Step
from shim.conformance.examples.judging import Judgement, Verdict
from shim.conformance.examples.running.runner import Outcome
from shim.conformance.examples.suite import CASE, FILE, REFERENCE, SHIM, SourceRun
from shim.conformance.matrix.cells import Cell, Column, Failure, Row, Seen, Subject, engine_in_use, error_of
from shim.conformance.runner import Result, Run


def subject_of(run: SourceRun) -> Subject:
    """Return what is to be counted of *run*."""
    source = run.source
    return Subject(
        source.framework,
        source.version,
        column_of(run),
        len(source.examples),
        len(run.judgements) - run.counts[Verdict.NOT_APPLICABLE],
        run.counts,
        run.unseen,
        source.is_recorded(run.side),
        source.kind,
    )


def rows_of_examples(runs: Sequence[SourceRun]) -> list[Row]:
    """Return one row for each example that was run, with a cell for every side and kind of tensor, in the order of the documents.

    *runs* are of one source.
    """
    judged: dict[str, dict[Column, Judgement]] = {}
    for run in runs:
        for judgement in run.judgements:
            name = judgement.outcome.example.name
            judged.setdefault(name, {})[column_of(run)] = judgement
    examples = {example.name: example for run in runs for example in run.source.examples}
    kind = runs[0].source.kind if runs else ""
    return [_row(examples[name], kind, judged[name]) for name in examples if name in judged]


def column_of(run: SourceRun) -> Column:
    """Return the column that the cells of *run* stand in."""
    return Column(run.side, run.tensors, engine_in_use() if run.side == SHIM else "")


def _row(example: Example, kind: str, judged: dict[Column, Judgement]) -> Row:
    code = [
        (step.line + offset, line)
        for step in example.steps
        for offset, line in enumerate(step.source.splitlines())
        if line.strip()
    ]
    cells = {column: cell_of(judgement) for column, judgement in judged.items()}
    notes = _unread([judgement.outcome for judgement in judged.values()]) if kind == FILE else ()
    return Row(example.name, example.framework, kind, example.place, example.ranks, tuple(code), cells, notes)


def _unread(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Say which comments look like outputs and were not checked in one of the *outcomes* of an example."""
    lines = sorted({line for outcome in outcomes for line in (*outcome.example.unread, *outcome.unread)})
    if not lines:
        return ()
    looks = (
        "1 comment looks like an output and was"
        if len(lines) == 1
        else f"{len(lines)} comments look like outputs and were"
    )
    return (f"{looks} not checked: line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}",)


def cell_of(judgement: Judgement) -> Cell:
    """Return what the matrix keeps of *judgement*."""
    outcome = judgement.outcome
    return Cell(
        judgement.verdict,
        outcome.seconds,
        judgement.reason,
        judgement.change,
        outcome.changes,
        tuple(_seen(outcome)),
        failures_of(outcome.failures),
    )


def _seen(outcome: Outcome) -> list[Seen]:
    """Return what ranks saw at the lines that show something, those together that saw the same of the same."""
    telling = {step.line: step for step in outcome.example.steps if step.wanted is not None or step.errors}
    if outcome.printed is not None:
        texts = {line: "\n".join(step.wanted.text.values()) for line, step in telling.items() if step.wanted}
        last = outcome.example.steps[-1].line
        return [Seen(line, (), text, outcome.printed) for line, text in texts.items()] or [
            Seen(last, (), None, outcome.printed)
        ]
    ranks: dict[tuple[int, str | None, str, str | None], list[int]] = {}
    for rank, sight in sorted(outcome.sights.items()):
        for step in sight.steps:
            if step.line in telling and step.error is None:
                shown = _shown(telling[step.line], rank)
                if shown is not None or step.outputs:
                    sighted = (step.line, shown, "\n".join(step.outputs), step.difference)
                    ranks.setdefault(sighted, []).append(rank)
    return [
        Seen(line, tuple(on), shown, seen, how) for (line, shown, seen, how), on in sorted(ranks.items(), key=_line)
    ]


def _shown(step: Step, rank: int) -> str | None:
    """Return what *step* is documented to show on *rank* and to raise, None for nothing."""
    text, error = None if step.wanted is None else step.wanted.on(rank), step.error_on(rank)
    told = [*([] if text is None else [textwrap.dedent(text)]), *([] if error is None else [f"raises {error}".strip()])]
    return "\n".join(told) if told else None


def _line(entry: tuple[tuple[int, str | None, str, str | None], list[int]]) -> tuple[int, list[int]]:
    return entry[0][0], entry[1]


def failures_of(failures: Sequence[tuple[int, int, str]]) -> tuple[Failure, ...]:
    """Return *failures*, (rank, line, text) each; those that are alike but for the rank they name are one, told as the first was.

    Tracebacks are alike when they end in the same error.
    """
    found: dict[tuple[int, str], Failure] = {}
    for rank, line, text in sorted(failures):
        told = error_of(text) if "Traceback" in text else text
        alike = (line, re.sub(rf"\brank {rank}\b", "rank", told))
        first = found.get(alike, Failure((), line, text))
        found[alike] = replace(first, ranks=(*first.ranks, rank))
    return tuple(found.values())


def rows_of_cases(pages: Sequence[Document], run: Run[Case], on_frameworks: Sequence[SourceRun] = ()) -> list[Row]:
    """Return one row for each case, with a cell for every kind of tensor that it was run with, and for the framework itself."""
    judged = {each.outcome.example.name: each for of_one in on_frameworks for each in of_one.judgements}
    results: dict[str, list[Result[Case]]] = {}
    for result in run.results:
        results.setdefault(result.subject.title, []).append(result)
    return [
        _row_of_case(page, case, results[case.title], judged.get(case.title))
        for page in pages
        for case in page.cases
        if case.title in results
    ]


def _row_of_case(page: Document, case: Case, results: Sequence[Result[Case]], itself: Judgement | None) -> Row:
    code = _code(case)
    last = code[-1][0] if code else 0
    cells = {Column(SHIM, result.kind, engine_in_use()): _cell_of_case(case, result, last) for result in results}
    if itself is not None:
        cells[Column(REFERENCE, "", "")] = cell_of(itself)
    notes = tuple(
        f"The document says: {note.says} What is true: {note.true}" for note in page.notes if note.case == case.name
    )
    return Row(case.title, page.framework, CASE, page.source, case.ranks, code, cells, notes)


def _code(case: Case) -> tuple[tuple[int, str], ...]:
    lines, _ = inspect.getsourcelines(case.call)
    return tuple((number, line.rstrip("\n")) for number, line in enumerate(lines, start=1))


def _cell_of_case(case: Case, result: Result[Case], line: int) -> Cell:
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
