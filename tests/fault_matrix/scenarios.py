"""Scenarios of the fault matrix: ranks of which one ends or stops at a chosen place, started by a process that forks them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[2] / "shim"
# Runs a file without the finder of an editable install, which knows another engine and goes before PYTHONPATH.
_PROGRAM = """
import runpy, sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "_editable" not in type(finder).__module__]
file = sys.argv[1]
sys.path[0] = file.rpartition("/")[0]
runpy.run_path(file, run_name="__main__")
"""
TIMEOUT = 3.0  # seconds of the groups in which a rank stops, or never comes


@dataclass(frozen=True)
class Scenario:
    """``what`` all ranks do over and over; ``victim`` has the fault at the engine's ``point``, when it comes there the ``which``-th time."""

    what: str
    point: str
    which: int
    action: str
    size: int
    victim: int


@dataclass(frozen=True)
class Told:
    """What a survivor was told, and what its next call raised."""

    error: str
    message: str
    ranks: tuple[int, ...]
    milliseconds: float  # after the fault
    again: str
    is_kept: bool  # the tensor it received into, although nobody has it any more
    carried_out: int  # operations, before the error


class Runner:
    """The process that forks the ranks; it has imported what they need, and is in no group itself."""

    def __init__(self, build: Path, folder: Path) -> None:
        module = next((build.resolve() / "native" / "bindings").glob("_native*.so"))
        package = folder / "shim"
        package.mkdir()
        for part in PACKAGE.iterdir():
            if not part.name.startswith("_native.cpython") and part.name != "__pycache__":
                (package / part.name).symlink_to(part)
        (package / module.name).symlink_to(module)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(Path(__file__).with_name("faulty_ranks.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(folder), "SHIM_STALL_WARNING": "0"},
        )

    def run(self, scenario: Scenario) -> dict[int, Told]:
        """Return what each survivor was told, by rank. Fails where a rank hung, or a process was left."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(scenario)) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert answer["hung"] == [], answer
        assert answer["left"] == [], answer
        return {int(rank): Told(**{**told, "ranks": tuple(told["ranks"])}) for rank, told in answer["told"].items()}

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
