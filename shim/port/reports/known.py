"""The baseline: entries of an earlier report in JSON, which are not reported again."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

from shim.port.plan import FileResult, Result
from shim.port.reports.wording import code_of, shown


def without_known(result: Result, baseline: str) -> Result:
    """Return *result* without the entries of *baseline*. Raises ValueError where that is no report in JSON.

    An entry is known by its file, its rule and the code of its line, so that it may move. One more of the same is new.
    """
    known: Counter[tuple[str, str, str]] = Counter()
    try:
        for file in json.loads(baseline)["files"]:
            known.update((file["path"], entry["rule"], entry["code"]) for entry in file["entries"])
    except (ValueError, KeyError, TypeError):
        raise ValueError("it is no report of shim port in JSON") from None
    files = [_without(known, file) for file in result.files]
    hidden = sum(len(old.findings) - len(new.findings) for old, new in zip(result.files, files, strict=True))
    return replace(result, files=files, known=hidden)


def _without(known: Counter[tuple[str, str, str]], file: FileResult) -> FileResult:
    new = []
    for finding in file.findings:
        key = shown(file.path), finding.entry.rule, code_of(file, finding)
        if known[key]:
            known[key] -= 1
        else:
            new.append(finding)
    return replace(file, findings=new)
