"""The result as a page of Markdown, as pull requests show it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shim.port.plan import Result
from shim.port.reports.wording import counted, place_of, rules_of, shown, summary, tensors_told, title

_KINDS = {
    "left": ("Left to you", "The code is as it was, and does not run on the target before you change it."),
    "changed": ("To look at", "The code is ported, and something about it is different."),
}


def as_markdown(result: Result, written: bool) -> str:
    """Return *result* as Markdown."""
    lines = [f"# {title(result).capitalize()}", "", summary(result, written), ""]
    if told := tensors_told(result):
        lines += [told, ""]
    if result.unported:
        lines += ["## Not ported", "", *_table(("file", "why", "what to do"), _problems(result)), ""]
    for kind, (head, meaning) in _KINDS.items():
        if result.count(kind):
            heads = ("place", "why", "what to do", "rule")
            rules = ", ".join(f"{number} {_code(rule)}" for rule, number in rules_of(result, kind))
            lines += [f"## {head}", "", f"{meaning} By rule: {rules}.", "", *_table(heads, _entries(result, kind)), ""]
    if result.changed:
        lines += ["## Files", "", *_table(("file", "places ported"), _changed(result)), ""]
    if result.verify:
        lines += ["## Compare the original with the port", "", "```", result.verify, "```", ""]
    return "\n".join(lines)


def _problems(result: Result) -> Iterator[tuple[str, ...]]:
    for file in result.unported:
        assert file.problem is not None
        yield _code(shown(file.path)), _plain(file.problem.why), _plain(file.problem.advice)


def _entries(result: Result, kind: str) -> Iterator[tuple[str, ...]]:
    for file in result.files:
        for finding in file.findings:
            entry = finding.entry
            if entry.kind == kind:
                place = f"{_code(shown(file.path))} {place_of(file, finding)}"
                yield place, _plain(entry.why), _plain(entry.advice), _code(entry.rule)


def _changed(result: Result) -> Iterator[tuple[str, ...]]:
    return ((_code(shown(file.path)), counted(file.places, "place")) for file in result.changed)


def _table(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> list[str]:
    return [_row(heads), _row(("---",) * len(heads)), *map(_row, rows)]


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Return *text* so that Markdown shows it as it is, in one line."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    """Return *text* as a code span in a cell, which ends at a bar or a backtick unless told otherwise."""
    text = " ".join(text.split()).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"
