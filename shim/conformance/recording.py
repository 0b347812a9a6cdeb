"""``python -m shim.conformance.recording WHAT FRAMEWORK``: bring what is on record of the installed framework's examples up to date.

WHAT is one of these; a person looks at what is written before it is committed.

``verdicts``: how they go on the frontends. ``pass`` is set by running them; one that does not pass gets ``fail`` and its first error as
evidence, for a person to replace ``fail`` by a verdict with a reason. Reasons on record are kept as long as their evidence is still seen.

``kinds``: which of them go with no other kinds of tensor, with the reason by kind. What fails is not recorded, but printed.

``reference``: how they and the cases go on the framework itself. What is as recorded stays; else the verdict is the run's, with a reason that
is on record of another example with the same evidence, or without one and with the last line of the error as evidence, for a person to replace.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shim.conformance.documents.pages import CASE_SIDES, DOCUMENTS, source_of_cases
from shim.conformance.examples.judging import FOLDER, Judgement, Record, Verdict, judge_reference
from shim.conformance.examples.reading.docstrings import installed_examples
from shim.conformance.examples.running.runner import Outcome, run_examples
from shim.conformance.examples.suite import REFERENCE, SHIM, SIDES, SourceRun, installed_source, run_source
from shim.conformance.kinds import KINDS
from shim.record.releases import version_of

_Row = dict[str, Any]


def record_verdicts(framework: str) -> None:
    """Run all examples of *framework* on the frontends and write the record."""
    file = _file("recorded", framework, version_of(framework))
    before = _rows_in(file)
    examples = installed_examples(framework)
    outcomes = {outcome.example.name: outcome for outcome in run_examples(examples)}
    rows = {example.name: _row(outcomes[example.name], before.get(example.name, {})) for example in examples}
    _write(file, rows)
    sys.stdout.write(
        f"{sum(row['verdict'] == 'fail' for row in rows.values())} of {len(rows)} need a verdict: {file}\n"
    )


def _row(outcome: Outcome, before: _Row) -> _Row:
    row: _Row = {"text": outcome.example.fingerprint, "verdict": "pass"}
    if not outcome.passed:
        known = before.get("evidence") and any(before["evidence"] in text for _, _, text in outcome.failures)
        lines = outcome.failures[0][2].strip().splitlines()
        row |= {"verdict": "fail", "reason": "", "evidence": lines[-1 if "Traceback" in lines[0] else 0]}
        row |= {key: before[key] for key in ("verdict", "reason", "evidence") if known}
    return row | ({"reference": before["reference"]} if "reference" in before else {})


def record_kinds(framework: str) -> None:
    """Run all examples of *framework* with all other kinds of tensor and write the record."""
    source = installed_source(framework)
    known = {name: replace(record, inapplicable={}) for name, record in source.records[SHIM].items()}
    unrecorded = replace(source, records={SHIM: known})  # so that all are run
    runs = [run_source(unrecorded, SHIM, tensors=kind) for kind in KINDS if kind != framework]
    file = _file("inapplicable", framework, source.version)
    rows = inapplicable_rows(runs)
    _write(file, rows)
    failed = [
        f"{each.outcome.example.name}, {run.tensors}"
        for run in runs
        for each in run.judgements
        if each.verdict is Verdict.FAIL
    ]
    sys.stdout.write(
        "\n".join([f"{len(rows)} of {len(source.examples)} are not for all kinds: {file}", *failed]) + "\n"
    )


def inapplicable_rows(runs: list[SourceRun]) -> dict[str, dict[str, str]]:
    """Return what is to be recorded of *runs*: a reason for each example and kind that is not applicable."""
    rows: dict[str, dict[str, str]] = {}
    for run in runs:
        for judgement in run.judgements:
            if judgement.verdict is Verdict.NOT_APPLICABLE:
                rows.setdefault(judgement.outcome.example.name, {})[run.tensors] = judgement.reason
    return rows


def record_reference(framework: str) -> None:
    """Run all that is to be run on *framework* itself and write its records."""
    of_framework = installed_source(framework)
    for source, sides, name in (
        (of_framework, SIDES, framework),
        (source_of_cases(framework, DOCUMENTS), CASE_SIDES, f"{framework}-cases"),
    ):
        file = _file("recorded", name, source.version)
        rows = _rows_in(file)
        known = source.records.get(REFERENCE, {})
        for judgement in run_source(source, REFERENCE, sides=sides).judgements:
            example = judgement.outcome.example
            own = rows.setdefault(example.name, {"text": example.fingerprint})
            own["reference"] = reference_row(judgement, own, known)
        _write(file, {example.name: rows[example.name] for example in source.examples})
        bare = sum(row["reference"]["verdict"] != "pass" and not row["reference"]["reason"] for row in rows.values())
        sys.stdout.write(f"{bare} of {len(rows)} need a reason: {file}\n")


def reference_row(judgement: Judgement, before: _Row, known: Mapping[str, Record]) -> _Row:
    """Return the record of *judgement*, where *before* is the example's row so far, and *known* are the records of all."""
    if judgement.change is None and "reference" in before:
        return dict(before["reference"])
    if judgement.outcome.passed:
        return {"verdict": Verdict.PASS.value}
    text = judgement.outcome.example.fingerprint
    for record in known.values():
        alike = Record(text, record.verdict, record.reason, record.evidence)
        if record.reason and judge_reference(judgement.outcome, alike, None).change is None:
            return {"verdict": record.verdict.value, "reason": record.reason, "evidence": record.evidence}
    run = judge_reference(judgement.outcome, None, None)
    return {"verdict": run.verdict.value, "reason": "", "evidence": run.reason}


def _file(folder: str, name: str, version: str) -> Path:
    return FOLDER / folder / f"{name}-{version}.json"


def _rows_in(file: Path) -> dict[str, _Row]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def _write(file: Path, rows: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    {"verdicts": record_verdicts, "kinds": record_kinds, "reference": record_reference}[sys.argv[1]](sys.argv[2])
