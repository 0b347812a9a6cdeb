"""Calls that are not made: of a process outside the group, refused ones, and one that is interrupted behind another call."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from core_world import world

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp
from shim.errors import ArgumentError, EngineError, MismatchError, NotMemberError, PeerLostError, ShimError

ME = Caller("test")


def test_a_wrong_argument_outside_the_group_is_told_in_the_callers_words() -> None:
    outside = groups.ProcessGroup("others", (1, 2), -1, None, "", 1.0)
    with pytest.raises(ArgumentError, match=r"^test: op must be good \(rank -1 of 2, group 'others'\)") as caught:
        calls.refused(ME, outside, ArgumentError("{op} must be good"))
    assert not isinstance(caught.value, NotMemberError)


@pytest.mark.ranks(3)
def test_refusals_in_a_row_are_told_one_by_one(rank: int) -> None:
    """Also to ranks that come late, when the refusing one could be far ahead."""
    with world() as group:
        for turn in range(5):
            if rank == 0:
                with pytest.raises(ArgumentError):
                    calls.refuse(ME, group, ArgumentError(f"reason {turn}"))
            else:
                time.sleep(0.2 if turn == 0 else 0.0)
                with pytest.raises(MismatchError, match=f"rank 0: refused: test: reason {turn}"):
                    calls.barrier(ME, group, now=True)
        tensor = np.arange(3.0) + rank
        calls.broadcast(ME, group, tensor, 0, now=True)
        assert tensor.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.ranks(1)
def test_an_interrupt_while_an_error_is_made_stays_one(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(kind: type, *_: object) -> ShimError:
        raise KeyboardInterrupt

    with world() as group:
        monkeypatch.setattr(ShimError, "__new__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            group.engine.all_reduce(np.zeros(2), np.zeros(3), ReduceOp.SUM, 1.0, True)
        monkeypatch.undo()


def interrupt_when_it_waits(thread: int) -> None:
    """Send this process a SIGINT once *thread* has stood at one place in a collective for 0.15 s."""

    def watch() -> None:
        places: list[tuple[int, int]] = []
        while len(places) < 4 or len(set(places[-4:])) > 1:
            time.sleep(0.05)
            frame = sys._current_frames()[thread]
            if "/shim/core/" in frame.f_code.co_filename:
                places.append((id(frame), frame.f_lasti))
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch).start()


@pytest.mark.ranks(2)
@pytest.mark.engine("shared_memory")
def test_ctrl_c_behind_a_started_call_gives_the_group_up(rank: int) -> None:
    group = groups.enter_world(ME, "test")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        tensor = np.ones(3)
        if rank == 0:
            calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM).start()
            interrupt_when_it_waits(threading.get_ident())
            with pytest.raises(KeyboardInterrupt):
                calls.barrier(ME, group, now=True)
            with pytest.raises(EngineError, match="given up when a wait in it was interrupted"):
                calls.barrier(ME, group, now=True)
        else:
            while not group.engine.is_gone(0):
                time.sleep(0.01)
            calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=True)  # for which rank 0's part was there
            with pytest.raises(PeerLostError, match="interrupted"):
                calls.barrier(ME, group, now=True)
    finally:
        signal.signal(signal.SIGINT, before)
        groups.close_world()


INTERRUPTED = f"""
import os, signal, sys, threading, time
import numpy as np
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp

{inspect.getsource(interrupt_when_it_waits)}

ME = Caller("test")
group = groups.enter_world(ME, "test")
if group.rank == 0:
    first = calls.barrier(ME, group).start()
    interrupt_when_it_waits(threading.get_ident())
    try:
        calls.all_reduce(ME, group, np.ones(1000), np.ones(1000), ReduceOp.SUM, now=True)
    except KeyboardInterrupt:
        first.wait()
else:
    while not group.engine.is_gone(0):
        time.sleep(0.01)
    calls.barrier(ME, group, now=True)
groups.close_world()
"""


@pytest.mark.own_ranks
def test_a_call_that_is_interrupted_behind_another_stays_until_it_has_ended(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(INTERRUPTED)
    ended = subprocess.run(
        [sys.executable, "-m", "shim", "run", "-n", "2", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "MALLOC_PERTURB_": "85"},  # what is freed is overwritten
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
