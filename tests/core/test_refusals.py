"""Calls that are not made: of a process outside the group, and of one that is interrupted behind another call."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp
from shim.errors import ArgumentError, EngineError, NotMemberError, PeerLostError

ME = Caller("test")


def test_a_wrong_argument_outside_the_group_is_told_in_the_callers_words() -> None:
    outside = groups.ProcessGroup("others", (1, 2), -1, None, "", 1.0)
    with pytest.raises(ArgumentError, match=r"^test: op must be good \(rank -1 of 2, group 'others'\)") as caught:
        calls.refused(ME, outside, ArgumentError("{op} must be good"))
    assert not isinstance(caught.value, NotMemberError)


@pytest.mark.ranks(2)
def test_ctrl_c_behind_a_started_call_gives_the_group_up(rank: int) -> None:
    group = groups.enter_world(ME, "test")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        tensor = np.ones(3)
        if rank == 0:
            calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM).start()
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
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
