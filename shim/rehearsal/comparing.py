"""A rehearsal from its beginning to what it found."""

from __future__ import annotations

from collections.abc import Callable

from shim.errors import ArgumentError
from shim.rehearsal.playing import Played, play
from shim.rehearsal.report import Findings
from shim.rehearsal.running import Plan, run_all
from shim.trace.reading import read_recording


def rehearsed(plan: Plan, told: Callable[[int], object] = lambda number: None) -> Findings:
    """Run the ranks of *plan* and compare what they called; *told* is given the number of those that have ended."""
    failed = run_all(plan, told)
    try:
        recording = read_recording(plan.folder)
    except ArgumentError:  # no rank has entered a world
        return Findings(None, plan.size, failed, Played())
    return Findings(recording, plan.size, failed, play(recording))
