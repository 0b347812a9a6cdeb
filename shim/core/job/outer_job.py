"""The outer job of a process: the one of which it is a rank itself, or else the nearest of those that it descends from.

Two helpers of different ranks know by it that they belong together. A launcher that names the run has told all of them that
name. Otherwise the engine in a rank's process is asked for the memory of its world, which all its ranks on the host share.
"""

from __future__ import annotations

import os
from pathlib import Path

from shim.core.job.launchers import LAUNCHERS
from shim.core.job.origin import lineage
from shim.core.job.variables import Variables
from shim.errors import ShimError

_FOR_AN_ANSWER = 5.0  # seconds, of a process that is there and busy; others answer at once or are not asked


def outer_job() -> str:
    """Return the name of this process's outer job; nothing where none of its ancestors is one of several ranks."""
    return _name_of_run() or _name_of_world()


def _name_of_world() -> str:
    # Here, so that nobody who only asks where ranks are needs the engine.
    from shim.core.reports.inquiries import ask_all

    processes = lineage()
    try:
        told = ask_all(_FOR_AN_ANSWER, processes)
    except OSError:
        return ""  # the system does not show who answers
    answers = {one.pid: one.widest for one in told if one.groups}
    worlds = (answers[process] for process in processes if process in answers)
    return next((f"world {world.inode}" for world in worlds if len(world.ranks) > 1), "")


def _name_of_run() -> str:
    """Return the name of the run of several ranks that a launcher told this program of, or the one that forked it.

    What the program has set since does not count: a helper may be told of ranks and ports of its own.
    """
    try:
        text = Path("/proc/self/environ").read_bytes()
    except OSError:
        return ""
    pairs = (os.fsdecode(entry).partition("=") for entry in text.split(b"\0"))
    variables = Variables({name: value for name, _, value in pairs})
    for launcher in LAUNCHERS:
        try:
            if launcher.was_used(variables) and launcher.number(variables, launcher.size) > 1:
                name = launcher.key(variables)
                if name.is_unique:
                    return f"{launcher.name} {name.text}"
        except ShimError:
            continue  # the variables do not tell
    return ""
