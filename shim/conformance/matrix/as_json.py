"""The matrix as JSON values: what ``--json`` writes, and what the HTML page has in it."""

from __future__ import annotations

import platform
from typing import Any

import shim
from shim.conformance.examples.judging import Verdict
from shim.conformance.matrix.cells import Cell, Column, Matrix, Row, Subject

SCHEMA = 3  # a change that breaks readers counts it up


def as_json(matrix: Matrix) -> dict[str, Any]:
    """Return *matrix* as JSON values.

    ::

        schema      3
        passed      whether nothing failed, no verdict changed, and all that is on record or was asked for was run
        seconds     how long it took
        shim, python, platform    versions, as text
        tensors     {kind of tensor: version}, of those that the cases ran with
        absent      frameworks that are not installed; missing: those of them that were asked for
        verdicts    all verdicts there are, as text
        subjects    [{framework, version, side: "shim" | "reference", tensors, engine, kind: "docstring" | "case" | "file", found, run,
                       verdicts: {verdict: count},
                      unseen: [names on record that were not run], recorded: whether any verdict is on record}]
        columns     [{key, title, side, tensors, engine}], tensors and engine empty for the framework itself
        examples    [{name, framework, kind: "docstring" | "case" | "file", place, ranks, notes: [text], code: [[line, text]],
                      cells: {column's key: {verdict, reason, change: text or null, seconds, rules: [text],
                                             seen: [{line, ranks, shown: text or null, seen, difference: text or null}],
                                             failures: [{line, ranks, summary, text}]}}}]
    """
    return {
        "schema": SCHEMA,
        "passed": matrix.passed,
        "seconds": round(matrix.seconds, 3),
        "shim": shim.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "tensors": dict(matrix.versions),
        "absent": list(matrix.absent),
        "missing": list(matrix.missing),
        "verdicts": [verdict.value for verdict in Verdict],
        "subjects": [_subject(subject) for subject in matrix.subjects],
        "columns": [_column(column) for column in matrix.columns],
        "examples": [_row(row) for row in matrix.rows],
    }


def _subject(subject: Subject) -> dict[str, Any]:
    return {
        "framework": subject.framework,
        "version": subject.version,
        **vars(subject.column),
        "kind": subject.kind,
        "found": subject.found,
        "run": subject.run,
        "verdicts": {verdict.value: subject.counts[verdict] for verdict in Verdict if subject.counts.get(verdict)},
        "unseen": list(subject.unseen),
        "recorded": subject.recorded,
    }


def _column(column: Column) -> dict[str, str]:
    return {"key": column.key, "title": column.title, **vars(column)}


def _row(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "framework": row.framework,
        "kind": row.kind,
        "place": row.place,
        "ranks": row.ranks,
        "notes": list(row.notes),
        "code": [list(line) for line in row.code],
        "cells": {column.key: _cell(cell) for column, cell in row.cells.items()},
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "verdict": cell.verdict.value,
        "reason": cell.reason,
        "change": cell.change,
        "seconds": round(cell.seconds, 3),
        "rules": list(cell.rules),
        "seen": [{**vars(seen), "ranks": list(seen.ranks)} for seen in cell.seen],
        "failures": [
            {"line": each.line, "ranks": list(each.ranks), "summary": each.summary, "text": each.text}
            for each in cell.failures
        ],
    }
