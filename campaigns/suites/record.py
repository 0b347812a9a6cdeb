"""What is on record of each suite with each release of torch: ``recorded.json``, of which ``docs/suites.md`` is made."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from campaigns.suites.running import PASSED, SKIPPED, Run
from campaigns.suites.suite import GLOO

FILE = Path(__file__).parent / "recorded.json"
UNSTEADY = "passes when it runs again"
UNSTEADY_ON_GLOO = "fails on gloo when it runs again"


def read() -> dict[str, dict[str, Any]]:
    """Return the entries by the suites' names, and in these by torch's versions."""
    entries: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return entries


def write(entries: dict[str, dict[str, Any]]) -> None:
    """Keep *entries*, in the order of their names."""
    FILE.write_text(json.dumps(entries, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def differing(gloo: Run, ours: Run) -> frozenset[str]:
    """Return the tests that pass on gloo and not here."""
    return frozenset(test for test in _passed(gloo) if ours.tests.get(test) != PASSED)


def entry_of(version: str, runs: Mapping[str, Run], again: Mapping[str, Mapping[str, Run]]) -> dict[str, Any]:
    """Return what is recorded of a suite at *version*: of its *runs* by way, and of what differed and was run *again*.

    The tests of a file count only if the engine served groups in it.
    """
    gloo = runs[GLOO]
    served = {file for run in runs.values() for file, recordings in run.recordings.items() if recordings}
    counted = {test: ending for test, ending in gloo.tests.items() if test.partition("::")[0] in served}
    entry: dict[str, Any] = {"version": version, "files": sorted(served), GLOO: _counts(counted)}
    entry["without groups"] = sorted({test.partition("::")[0] for test in gloo.tests} - served)
    entry["failed on gloo"] = sorted(test for test, ending in counted.items() if not _is_well(ending))
    for way, ours in runs.items():
        if way != GLOO:
            passing = sum(ours.tests.get(test) == PASSED for test in _passed(gloo) if test in counted)
            told = {test: _told(test, way, ours, again.get(way, {})) for test in sorted(differing(gloo, ours))}
            passing += sum(ending == UNSTEADY for test, ending in told.items() if test in counted)
            entry[way] = {"passed": passing, "differing": told}
    return entry


def _told(test: str, way: str, ours: Run, again: Mapping[str, Run]) -> str:
    """Return how *test* ended in the end: a failure counts only if gloo passes it once more, and the engine does not."""
    if again and again[way].tests.get(test) == PASSED:
        return UNSTEADY
    if again and again[GLOO].tests.get(test) != PASSED:
        return UNSTEADY_ON_GLOO
    return ours.tests.get(test, "did not run")


def _counts(tests: Mapping[str, str]) -> dict[str, int]:
    counts = Counter("skipped" if ending.startswith(SKIPPED) else ending for ending in tests.values())
    failed = len(tests) - counts[PASSED] - counts[SKIPPED]
    return {"passed": counts[PASSED], "failed": failed, "skipped": counts[SKIPPED]}


def _passed(run: Run) -> list[str]:
    return [test for test, ending in run.tests.items() if ending == PASSED]


def _is_well(ending: str) -> bool:
    return ending == PASSED or ending.startswith(SKIPPED)
