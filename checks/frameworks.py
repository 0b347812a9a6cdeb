"""``docs/frameworks.md`` is written from what is on record of the frameworks themselves, with their own examples and our cases.

``python -m checks.frameworks`` writes it; the check compares what stands there with what would be written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shim.conformance.examples.judging import Verdict

PAGE = Path("docs/frameworks.md")
RECORDS = Path("shim/conformance/examples/recorded")
_PREAMBLE = """\
# What the frameworks themselves do on a CPU

This page shows how the examples in the frameworks' docstrings, and this project's cases of five documents, end on the
frameworks themselves, on one machine without accelerators. Every run of `shim conformance --reference` compares its
verdicts with these, and checks that the reasons are still true. [conformance.md](conformance.md) explains the verdicts.

`python -m checks.frameworks` generates this page from the records. Do not edit it.
"""
_Rows = Mapping[str, Mapping[str, Any]]


def check(root: Path) -> list[str]:
    """Find a page that is not what is on record."""
    page = root / PAGE
    written = page.read_text(encoding="utf-8") if page.exists() else ""
    return [] if written == render(root) else [f"{PAGE}:1: is not what is on record: run python -m checks.frameworks"]


def render(root: Path) -> str:
    """Return the whole page for the tree at *root*."""
    sources = dict(_sources(root / RECORDS))
    verdicts = [each.value for each in Verdict if any(each.value in _counts(rows) for rows in sources.values())]
    lines = [
        _PREAMBLE,
        f"| framework | examples | {' | '.join(verdicts)} |",
        f"| --- | --- |{' --- |' * len(verdicts)}",
    ]
    for title, rows in sources.items():
        counts = _counts(rows)
        lines.append(f"| {title} | {len(rows)} | {' | '.join(str(counts[verdict]) for verdict in verdicts)} |")
    for title, rows in sources.items():
        lines += ["", f"## {title}", *_reasons(rows)]
    return "\n".join(lines) + "\n"


def _sources(folder: Path) -> Iterator[tuple[str, _Rows]]:
    """Yield what is on record of each framework itself, with a title."""
    for file in sorted(folder.glob("*.json"), key=lambda file: (file.name.split("-")[0], "-cases-" in file.name)):
        rows = json.loads(file.read_text(encoding="utf-8"))
        framework, _, version = file.stem.replace("-cases", "").partition("-")
        title = f"{framework} {version}{', cases' * ('-cases-' in file.name)}"
        found = {name: row["reference"] for name, row in rows.items() if "reference" in row}
        if found:
            yield title, found


def _counts(rows: _Rows) -> Counter[str]:
    return Counter(row["verdict"] for row in rows.values())


def _reasons(rows: _Rows) -> Iterator[str]:
    """Yield the reasons for what does not pass, each with its examples."""
    told: dict[tuple[str, str], list[str]] = {}
    for name, row in rows.items():
        if row["verdict"] != Verdict.PASS.value:
            verdict = " or ".join([row["verdict"], *(other["verdict"] for other in row.get("or", ()))])
            told.setdefault((verdict, row["reason"]), []).append(f"`{name}`")
    if told:
        yield from ("", "| verdict | reason | examples |", "| --- | --- | --- |")
    for (verdict, reason), names in sorted(told.items(), key=lambda item: item[0][0]):
        yield f"| {verdict} | {_plain(reason)} | {', '.join(names)} |"
    if not told:
        yield from ("", "Every example passes.")


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    _root = Path(__file__).resolve().parent.parent
    (_root / PAGE).write_text(render(_root), encoding="utf-8")
