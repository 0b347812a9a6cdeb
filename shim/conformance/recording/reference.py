"""``python -m shim.conformance.recording.reference FRAMEWORK``: bring the record of the installed framework itself up to date.

Runs its examples and the cases on it. What is as recorded stays; else the verdict is the run's, with a reason that is on record of another example
with the same evidence, or without one and with the last line of the error as evidence, for a person to replace.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shim.conformance.documents.pages import CASE_SIDES, DOCUMENTS, source_of_cases
from shim.conformance.examples import judging
from shim.conformance.examples.judging.reference_verdicts import judge_reference
from shim.conformance.examples.judging.verdicts import Judgement, Record, Verdict
from shim.conformance.examples.sides import REFERENCE, SIDES
from shim.conformance.examples.suite import installed_source, run_source

_Row = dict[str, Any]


def main(framework: str) -> None:
    """Run all that is to be run on *framework* and write its records."""
    of_framework = installed_source(framework)
    for source, sides, name in (
        (of_framework, SIDES, framework),
        (source_of_cases(framework, DOCUMENTS), CASE_SIDES, f"{framework}-cases"),
    ):
        file = Path(judging.__path__[0]) / "recorded" / f"{name}-{source.version}.json"
        rows: dict[str, _Row] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        known = source.records.get(REFERENCE, {})
        for judgement in run_source(source, REFERENCE, sides=sides).judgements:
            example = judgement.outcome.example
            own = rows.setdefault(example.name, {"text": example.fingerprint})
            own["reference"] = row_of(judgement, own, known)
        in_order = {example.name: rows[example.name] for example in source.examples}
        file.write_text(json.dumps(in_order, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        bare = sum(row["reference"]["verdict"] != "pass" and not row["reference"]["reason"] for row in rows.values())
        sys.stdout.write(f"{bare} of {len(rows)} need a reason: {file}\n")


def row_of(judgement: Judgement, before: _Row, known: Mapping[str, Record]) -> _Row:
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


if __name__ == "__main__":
    main(sys.argv[1])
