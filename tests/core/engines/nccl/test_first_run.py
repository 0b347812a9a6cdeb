"""The runner of the first minutes on a GPU: it ends what hangs, goes on where a step fails, and tells what it had no time for."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import first_run
import pytest

HANGS = """
import subprocess, sys, time
for starts_a_session in (False, True):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=starts_a_session)
    print(child.pid, flush=True)
time.sleep(60)
"""
FAILS = "raise ValueError('no device')"
PASSES = """
import json, os
open(os.environ["FIRST_RUN_RESULT"], "w").write(json.dumps({"figures": {"answer": 42}}))
"""


def outcomes(programs: dict[str, str], seconds: float, whole: float = 60.0) -> list[Any]:
    """Run *programs* one after the other, each for *seconds* at most, in *whole* seconds, and return the lines that are told."""
    told: list[Any] = []
    turns = [[first_run.Part(name, "", [sys.executable, "-c", text], seconds)] for name, text in programs.items()]
    first_run.run(turns, time.monotonic() + whole, told.append)
    return told


def test_a_step_that_hangs_is_killed_with_its_children() -> None:
    (told,) = outcomes({"hangs": HANGS}, 1.0)
    assert told["status"] == "timeout"
    assert len(told["said"]) == 2
    for pid in map(int, told["said"]):
        state = Path(f"/proc/{pid}/stat")
        assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_step_that_fails_does_not_stop_the_next() -> None:
    failed, passed = outcomes({"fails": FAILS, "passes": PASSES}, 10.0)
    assert (failed["step"], failed["status"], failed["said"][-1]) == ("fails", "failed", "ValueError: no device")
    assert (passed["status"], passed["figures"]) == ("passed", {"answer": 42})


def test_what_there_is_no_time_for_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_run, "_LEAST", 0.4)
    hung, left_out = outcomes({"hangs": HANGS, "passes": PASSES}, 10.0, whole=0.5)
    assert hung["status"] == "timeout"
    assert hung["seconds"] < 2.0
    assert (left_out["status"], left_out["why"]) == ("skipped", "the time given is used up")


def test_all_steps_fit_in_the_time() -> None:
    assert first_run.limit(first_run.STEPS) <= 60 * first_run.MINUTES
