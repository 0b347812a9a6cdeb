"""``python -m shim.conformance.recording.kinds FRAMEWORK``: record which examples of the installed framework go with no other kinds of tensor.

A row in ``examples/judging/inapplicable/`` for each of these has the reason by kind, for a person to look at before it is committed.
What fails is not recorded, but printed.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from shim.conformance.examples import judging
from shim.conformance.examples.judging.verdicts import Verdict
from shim.conformance.examples.sides import SHIM
from shim.conformance.examples.suite import SourceRun, installed_source, run_source
from shim.conformance.kinds import KINDS

FOLDER = Path(judging.__path__[0]) / "inapplicable"


def main(framework: str) -> None:
    """Run all examples of *framework* with all other kinds of tensor and write the record."""
    source = installed_source(framework)
    known = {name: replace(record, inapplicable={}) for name, record in source.records[SHIM].items()}
    unrecorded = replace(source, records={SHIM: known})  # so that all are run
    runs = [run_source(unrecorded, SHIM, tensors=kind) for kind in KINDS if kind != framework]
    file = FOLDER / f"{framework}-{source.version}.json"
    rows = as_rows(runs)
    file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    failed = [
        f"{each.outcome.example.name}, {run.tensors}"
        for run in runs
        for each in run.judgements
        if each.verdict is Verdict.FAIL
    ]
    sys.stdout.write(
        "\n".join([f"{len(rows)} of {len(source.examples)} are not for all kinds: {file}", *failed]) + "\n"
    )


def as_rows(runs: list[SourceRun]) -> dict[str, dict[str, str]]:
    """Return what is to be recorded of *runs*: a reason for each example and kind that is not applicable."""
    rows: dict[str, dict[str, str]] = {}
    for run in runs:
        for judgement in run.judgements:
            if judgement.verdict is Verdict.NOT_APPLICABLE:
                rows.setdefault(judgement.outcome.example.name, {})[run.tensors] = judgement.reason
    return rows


if __name__ == "__main__":
    main(sys.argv[1])
