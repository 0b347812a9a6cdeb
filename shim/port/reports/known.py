"""The baseline: entries of an earlier report in JSON, which are not reported again."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

from shim.port.plan import FileResult, Finding, Result
from shim.port.reports.wording import code_of, shown

Known = tuple[str, str, str]  # file, rule and code of the line, so that an entry may move


def known_entries(report: str) -> Counter[Known]:
    """Return the entries of *report*. Raises ValueError where it is no report in JSON."""
    try:
        files = json.loads(report)["files"]
        return Counter((file["path"], entry["rule"], entry["code"]) for file in files for entry in file["entries"])
    except (ValueError, KeyError, TypeError):
        raise ValueError("not a JSON report of shim port") from None


def without_known(result: Result, known: Counter[Known]) -> Result:
    """Return *result* without the entries that are *known*; one more of the same is new."""
    seen: Counter[Known] = Counter()

    def is_new(file: FileResult, finding: Finding) -> bool:
        key = shown(file.path), finding.entry.rule, code_of(file, finding)
        seen[key] += 1
        return seen[key] > known[key]

    files = [replace(file, findings=[each for each in file.findings if is_new(file, each)]) for file in result.files]
    return replace(result, files=files, known=(seen & known).total()) if known else result
