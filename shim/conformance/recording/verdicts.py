"""``python -m shim.conformance.recording.verdicts FRAMEWORK``: bring the record of the installed framework up to date.

Verdicts that are ``pass`` are set by running the examples; one that does not pass gets ``fail`` and its first error as evidence, for a person to
replace ``fail`` by a verdict with a reason. Reasons on record are kept as long as their evidence is still seen.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from shim.conformance.examples import judging
from shim.conformance.examples.reading.docstrings import installed_examples
from shim.conformance.examples.running.runner import Outcome, run_examples
from shim.substitution.mirrors import version_of


def main(framework: str) -> None:
    """Run all examples of *framework* and write the record."""
    file = Path(judging.__path__[0]) / "recorded" / f"{framework}-{version_of(framework)}.json"
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    examples = installed_examples(framework)
    outcomes = {outcome.example.name: outcome for outcome in run_examples(examples)}
    rows = {example.name: _row(outcomes[example.name], before.get(example.name, {})) for example in examples}
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(
        f"{sum(row['verdict'] == 'fail' for row in rows.values())} of {len(rows)} need a verdict: {file}\n"
    )


def _row(outcome: Outcome, before: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"text": outcome.example.fingerprint, "verdict": "pass"}
    if not outcome.passed:
        known = before.get("evidence") and any(before["evidence"] in text for _, _, text in outcome.failures)
        lines = outcome.failures[0][2].strip().splitlines()
        row |= {"verdict": "fail", "reason": "", "evidence": lines[-1 if "Traceback" in lines[0] else 0]}
        row |= {key: before[key] for key in ("verdict", "reason", "evidence") if known}
    return row | ({"reference": before["reference"]} if "reference" in before else {})


if __name__ == "__main__":
    main(sys.argv[1])
