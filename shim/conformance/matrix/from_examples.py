"""Rows of the matrix from the frameworks' own examples, as they were judged on each side and with each kind of tensor."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace

from shim.conformance.examples.example import Example, Step
from shim.conformance.examples.judging.verdicts import Judgement, Verdict
from shim.conformance.examples.running.runner import Outcome
from shim.conformance.examples.sides import SHIM
from shim.conformance.examples.suite import FILE, SourceRun
from shim.conformance.matrix.cells import Cell, Column, Failure, Row, Seen, Subject, engine_in_use, error_of


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
