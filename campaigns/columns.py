"""Run the frameworks' documented examples on another library: ``python -m campaigns.columns [NAME ...]``.

``website/columns/NAME.json`` says how; the command writes there how each example ended, and the site shows it as a column of parity/examples:

- ``title``, and ``note``: what the column shows;
- ``examples``: the framework whose examples run, as written, on ranks that its launcher would have made;
- ``environment``: variables that all ranks find; ``modules``: for each module of the framework the one that an import gives in its place.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shim.conformance.examples.example import Example
from shim.conformance.examples.judging import Judgement, Record, judge_reference, read_records
from shim.conformance.examples.reading.docstrings import installed_examples
from shim.conformance.examples.running.rank import Sight, see_example
from shim.conformance.examples.running.reference import Variables, enter, run_on_frameworks
from shim.conformance.examples.running.runner import Outcome
from shim.conformance.examples.suite import REFERENCE, SHIM
from shim.record.releases import version_of

FOLDER = Path(__file__).resolve().parents[1] / "website" / "columns"
_MODULES = "SHIM_COLUMN_MODULES"  # tells ranks what stands for what


def main(names: Sequence[str]) -> int:
    """Run the examples of the columns called *names*, or of all, write their verdicts, and return the exit status."""
    files = [FOLDER / f"{name}.json" for name in names] or sorted(FOLDER.glob("*.json"))
    for file in files:
        column = json.loads(file.read_text(encoding="utf-8"))
        framework = column["examples"]
        examples = installed_examples(framework)
        column["release"] = f"{framework}-{version_of(framework)}"
        column["verdicts"] = verdicts(column, examples)
        file.write_text(json.dumps(column, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        passed = sum(row["verdict"] in ("pass", "ran, nothing claimed") for row in column["verdicts"].values())
        sys.stdout.write(f"{column['title']}: {passed} of {len(examples)} examples of {column['release']} pass\n")
    return 0


def verdicts(column: dict[str, Any], examples: Sequence[Example]) -> dict[str, dict[str, str]]:
    """Run *examples* as *column* says, and return the verdict on each with its reason.

    Where one fails that fails on the framework itself or on the frontends too, that has a person's verdict, such as that its document is wrong.
    """
    os.environ.update(column["environment"])
    os.environ[_MODULES] = json.dumps(column["modules"])
    outcomes = run_on_frameworks("campaigns.columns:see_on_this_rank", examples, _ignore, _ignore)
    framework = column["examples"]
    theirs, ours = (read_records(framework, version_of(framework), side) for side in (REFERENCE, SHIM))
    names = [outcome.example.name for outcome in outcomes]
    return {name: _told(each, theirs.get(name), ours.get(name)) for name, each in zip(names, outcomes, strict=True)}


def see_on_this_rank(example: Example, variables: Variables) -> Sight:
    """Run *example* on the rank that this process is, a copy for this run, with other modules in place of the framework's."""
    rank = enter(example.framework, variables)
    for name, other in json.loads(os.environ[_MODULES]).items():
        sys.modules[name] = importlib.import_module(other)
        package, _, last = name.rpartition(".")
        if package:
            setattr(importlib.import_module(package), last, sys.modules[name])
    return see_example(example, rank, substituted=False)


def _ignore(event: object) -> None:
    pass


def _told(outcome: Outcome, theirs: Record | None, ours: Record | None) -> dict[str, str]:
    judgement = judge_reference(outcome, theirs, None)
    if judgement.change is not None and ours is not None:
        judgement = judge_reference(outcome, None, Judgement(outcome, ours.verdict, ours.reason))
    return {"verdict": judgement.verdict.value} | ({"reason": judgement.reason} if judgement.reason else {})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
