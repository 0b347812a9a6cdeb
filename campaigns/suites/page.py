"""``docs/suites.md``, from what is on record."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from campaigns.suites import record
from campaigns.suites.listed import DIFFERENCES, LEFT_OUT, SUITES
from campaigns.suites.suite import ENGINE, FRONTEND, GLOO, Suite

_FILE = Path(__file__).resolve().parents[2] / "docs" / "suites.md"
_HEAD = """\
# Other projects' tests

{engine} of {gloo} tests of other projects that pass on gloo pass on shim's engine, all rows together. They are these
projects' own tests of distributed code, on CPUs, with up to eight ranks. Every test file runs two or three times:

| column | how |
| --- | --- |
| gloo | `pytest FILE` |
| engine | `SHIM_TORCH_BACKEND=1 pytest FILE` |
| frontend | `pytest FILE`, with `shim.frontends.torch.distributed` where it imports `torch.distributed as dist` |

The last two columns count the tests that pass among those that pass on gloo. The tests of a file count only if the
engine served groups in it. A test that passes on gloo alone runs once more both ways, and differs if it does so again.

`python -m campaigns.suites --record` generates this page; `--torch 2.10.0` runs the suites with another release.

| suite | release | torch | gloo: pass, fail, skipped | engine | frontend |
| --- | --- | --- | --- | --- | --- |
"""


def write() -> None:
    """Write the page."""
    _FILE.write_text(text(record.read()), encoding="utf-8")


def text(entries: dict[str, dict[str, Any]]) -> str:
    """Return the page that *entries* make."""
    shown = [
        (suite, torch, entry) for suite in SUITES for torch, entry in _newest_first(entries.get(suite.name, {}).items())
    ]
    total = sum(entry[GLOO]["passed"] for _, _, entry in shown)
    ours = sum(entry[ENGINE]["passed"] for _, _, entry in shown)
    lines = [_HEAD.format(gloo=total, engine=ours) + "\n".join(_row(*one) for one in shown), "", *_differences(shown)]
    lines += ["## What is run", "", "| suite | tests | adapted |", "| --- | --- | --- |"]
    lines += [_files(suite, next(entry for one, _, entry in shown if one is suite)) for suite, _ in _once(shown)]
    lines += ["", "## What is left out", "", "| suite | tests | reason |", "| --- | --- | --- |"]
    lines += [f"| {one.suite} | {one.tests} | {one.reason} |" for one in LEFT_OUT]
    return "\n".join(lines) + "\n"


def reasons(suite: str, torch: str, entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give each test that fails on the engine and passes on gloo, and why; with no reason, it is a defect until shown otherwise."""
    for way in (ENGINE, FRONTEND):
        for test, ending in entry.get(way, {"differing": {}})["differing"].items():
            if ending not in (record.UNSTEADY, record.UNSTEADY_ON_GLOO):
                listed = (
                    one.reason
                    for one in DIFFERENCES
                    if one.suite == suite and fnmatch(test, one.test) and fnmatch(torch, one.release)
                )
                yield test, next(listed, "")


def _row(suite: Suite, torch: str, entry: dict[str, Any]) -> str:
    gloo = entry[GLOO]
    counts = f"{gloo['passed']}, {gloo['failed']}, {gloo['skipped']}"
    release = suite.revision[:8] if suite.library == "torch" else entry["version"]
    ways = [str(entry[way]["passed"]) if way in entry else "–" for way in (ENGINE, FRONTEND)]
    return "| " + " | ".join([suite.name, release, torch, counts, *ways]) + " |"


def _differences(shown: list[tuple[Suite, str, dict[str, Any]]]) -> Iterator[str]:
    """Tell each test that differs with its reason, and how many passed only when they ran again."""
    by_reason: dict[tuple[str, str], dict[str, list[str]]] = {}
    for suite, torch, entry in shown:
        for test, reason in reasons(suite.name, torch, entry):
            by_reason.setdefault((suite.name, reason or "**not known yet**"), {}).setdefault(test, []).append(torch)
    if by_reason:
        yield from ("## What differs", "", "| suite | test | torch | reason |", "| --- | --- | --- | --- |")
    for (name, reason), tests in by_reason.items():
        for test, releases in tests.items():
            yield f"| {name} | `{_cell(test)}` | {', '.join(dict.fromkeys(releases))} | {reason} |"
    if by_reason:
        yield ""


def _files(suite: Suite, entry: dict[str, Any]) -> str:
    common = Path(entry["files"][0]).parts[0] if entry["files"] else ""
    names = ", ".join(f"`{file.removeprefix(f'{common}/')}`" for file in entry["files"])
    return f"| {suite.name} | in `{common}/`: {names} | {suite.adapted} |"


def _newest_first(entries: Any) -> list[tuple[str, dict[str, Any]]]:
    return sorted(entries, key=lambda one: [int(part) for part in one[0].split(".")], reverse=True)


def _once(shown: list[tuple[Suite, str, dict[str, Any]]]) -> Iterator[tuple[Suite, str]]:
    seen = set()
    for suite, torch, _ in shown:
        if suite.name not in seen:
            seen.add(suite.name)
            yield suite, torch


def _cell(told: str) -> str:
    return told.replace("|", "\\|")
