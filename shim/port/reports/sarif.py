"""The result as SARIF 2.1.0, which GitHub's code scanning and editors show beside the code.

See: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from shim import __version__
from shim.port.entry_rules import RULES, page_of
from shim.port.plan import FileResult, Result
from shim.port.reports.wording import relative

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"  # the folder to which the addresses are relative; a viewer knows where that is
_LEVELS = {"left": "warning", "changed": "note"}
_NOT_PORTED = "not-ported"


def as_sarif(result: Result, written: bool) -> str:
    """Return *result* as SARIF. Lines are those of the files before the port, wherever that was *written*."""
    found = [(rule, content) for file in result.files for rule, content in _results(file)]
    rules: dict[str, dict[str, Any]] = {}
    for rule, content in found:
        rules.setdefault(rule, _rule(rule, content))
    numbers = {rule: number for number, rule in enumerate(rules)}
    driver = {
        "name": "shim port",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": list(rules.values()),
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"uri": f"{Path.cwd().as_uri().rstrip('/')}/"}},
        "results": [{"ruleId": rule, "ruleIndex": numbers[rule], **content} for rule, content in found],
        "properties": {"written": written},
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _results(file: FileResult) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the rule and the content of what is told of *file*."""
    if file.problem is not None:
        yield _NOT_PORTED, _result(file, "error", file.problem.why, file.problem.advice, {"startLine": 1})
    for finding in file.findings:
        entry = finding.entry
        column = {} if finding.cell else {"startColumn": entry.column}
        region = {"startLine": finding.file_line, **column}
        where = f"Cell {finding.cell}, line {entry.line}: " if finding.cell else ""
        yield entry.rule, _result(file, _LEVELS[entry.kind], where + entry.why, entry.advice, region)


def _result(file: FileResult, level: str, why: str, advice: str, region: dict[str, int]) -> dict[str, Any]:
    place = relative(file.path)
    artifact = (
        {"uri": quote(os.fsencode(place)), "uriBaseId": _ROOT}
        if not place.startswith("/")
        else {"uri": Path(place).as_uri()}
    )
    return {
        "level": level,
        "message": {"text": f"{why}\n{advice}"},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
    }


def _rule(rule: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return the description of *rule*, whose first result has this *content*."""
    name = rule.replace("-", " ").capitalize()
    _, _, advice = content["message"]["text"].partition("\n")
    page = {"markdown": page_of(rule)} if rule in RULES else {}
    return {
        "id": rule,
        "shortDescription": {"text": name},
        "help": {"text": f"{name}. What to do: {advice}", **page},
        "defaultConfiguration": {"level": content["level"]},
    }
