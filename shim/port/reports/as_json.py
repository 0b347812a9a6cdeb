"""The result as JSON, for programs, and the baseline: such a report whose entries are not reported again.

::

    {"version": 1,
     "plan": {"source": "torch", "target": "mindspore", "onto": "shim", "scope": "collectives"},
     "written": false,
     "summary": {"searched": 20, "files": 3, "places": 12, "left": 1, "changed": 2, "not_ported": 0},
     "verify": "shim port ... --verify ...",
     "files": [{"path": "train.py", "is_changed": true, "places": 4, "problem": null,
                "entries": [{"line": 12, "column": 5, "cell": null, "file_line": 12, "kind": "left", "rule": "...", "why": "...", "advice": "...",
                             "code": "..."}]}]}

``version`` grows when a member changes its meaning or goes; members may be added. ``files`` are those with something to tell. In a notebook,
``line`` counts within ``cell``; ``file_line`` is the line of the file, ``code`` what stands there: by it, a baseline knows the entry again. ``problem`` is null, or has ``why`` and ``advice``.
``verify`` is the command that compares the original with the port, or null.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from typing import Any

from shim.port.plan import FileResult, Finding, Result
from shim.port.reports.wording import api_name, code_of, shown

VERSION = 1


def as_json(result: Result, written: bool) -> str:
    """Return *result* as JSON."""
    plan = result.plan
    content = {
        "version": VERSION,
        "plan": {
            "source": api_name(plan.source),
            "target": api_name(plan.target),
            "onto": plan.onto,
            "scope": plan.scope,
        },
        "written": written,
        "summary": {
            "searched": result.searched,
            "files": len(result.changed),
            "places": result.places,
            "left": result.count("left"),
            "changed": result.count("changed"),
            "not_ported": len(result.unported),
        },
        "verify": result.verify or None,
        "files": [_file(file) for file in result.files],
    }
    return json.dumps(content, indent=1) + "\n"


def _file(file: FileResult) -> dict[str, Any]:
    return {
        "path": shown(file.path),
        "is_changed": file.is_changed,
        "places": file.places,
        "problem": dataclasses.asdict(file.problem) if file.problem else None,
        "entries": [
            dataclasses.asdict(finding.entry)
            | {"cell": finding.cell or None, "file_line": finding.file_line, "code": code_of(file, finding)}
            for finding in file.findings
        ],
    }


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

    files = [
        dataclasses.replace(file, findings=[each for each in file.findings if is_new(file, each)])
        for file in result.files
    ]
    return dataclasses.replace(result, files=files, known=(seen & known).total()) if known else result
