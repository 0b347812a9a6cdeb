"""What is on record of each program: ``recorded.json``, of which ``docs/real_programs.md`` is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from campaigns.real_programs.comparing import compare, is_on_engine
from campaigns.real_programs.program import Program
from campaigns.real_programs.running import AS_INSTALLED, ENGINE, GLOO, Run

FILE = Path(__file__).parent / "recorded.json"


def read() -> dict[str, dict[str, Any]]:
    """Return the entries by the programs' names."""
    if not FILE.exists():
        return {}
    entries: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return entries


def write(entries: dict[str, dict[str, Any]]) -> None:
    """Keep *entries*, in the order of their names."""
    FILE.write_text(json.dumps(entries, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def entry_of(program: Program, version: str, runs: dict[str, Run]) -> dict[str, Any]:
    """Return what is recorded of *program*, with *version* of its library, after its *runs*."""
    gloo = runs[GLOO]
    entry: dict[str, Any] = {"version": version, GLOO: _told(gloo)}
    for way in (ENGINE, AS_INSTALLED):
        if way in runs:
            entry[way] = _told(runs[way]) | {"results": _results(gloo, runs[way])}
    return entry


def is_wrong(entry: dict[str, Any]) -> bool:
    """Tell whether a program that gloo carries out ends otherwise on the engine."""
    ours = [entry[way] for way in (ENGINE, AS_INSTALLED) if way in entry]
    return entry[GLOO]["ending"] == "ok" and any(not one["results"].startswith("the same") for one in ours)


def _told(run: Run) -> dict[str, Any]:
    return {"ending": run.ending, "seconds": round(run.seconds, 1)}


def _results(gloo: Run, ours: Run) -> str:
    if not (gloo.is_ok and ours.is_ok):
        return "none to compare"
    if not is_on_engine(ours):
        return f"not on the engine: {ours.groups}"
    return compare(gloo, ours)
