"""A rank that comes to a collective after another one gave it up: no rank has the result, on one host and on several."""

from __future__ import annotations

import gc
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from core_world import world
from emulated_hosts import played

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.errors import CollectiveTimeoutError, PeerLostError

ME = Caller("test")
ENGINES = {"shared_memory": 1, "plain": 1, "c10d": 2, "hierarchical": 2}  # with the hosts that the ranks play


def sum_up(group: ProcessGroup, count: int) -> np.ndarray:
    tensor = np.full(count, group.rank + 1, np.float32)
    calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=True)
    return tensor


def mappings() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:shim")


def wait_until_gone(group: ProcessGroup, rank: int) -> None:
    while not group.engine.ending_of(rank):
        time.sleep(0.005)


@pytest.mark.ranks(2)
@pytest.mark.engine("shared_memory")
@pytest.mark.parametrize("count", [1, 1_000_000])
@pytest.mark.parametrize("engine", ENGINES)
def test_who_comes_after_a_timeout_has_no_result(rank: int, engine: str, count: int) -> None:
    with played(engine, ENGINES[engine]):
        group = groups.enter_world(ME, "test", timeout=0.5)
        assert sum_up(group, count)[-1] == 3
        if rank == 0:
            with pytest.raises(CollectiveTimeoutError, match="not arrived: rank 1"):
                sum_up(group, count)
        else:
            wait_until_gone(group, 0)
            with pytest.raises(PeerLostError, match="rank 0 gave the group up"):
                sum_up(group, count)
        del group
        groups.close_world()
    gc.collect()  # an error refers to the frames that refer to it
    assert mappings() == 0


class _Interrupted(Exception):
    pass


@pytest.mark.ranks(2)
@pytest.mark.parametrize("count", [1, 1_000_000])
def test_who_comes_after_a_handler_of_signals_raised_has_no_result(rank: int, count: int) -> None:
    def interrupt(*_: object) -> None:
        raise _Interrupted

    with world() as group:
        if rank == 0:
            before = signal.signal(signal.SIGALRM, interrupt)
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(_Interrupted):
                sum_up(group, count)
            signal.signal(signal.SIGALRM, before)
        else:
            wait_until_gone(group, 0)
            with pytest.raises(PeerLostError, match="rank 0 gave the group up"):
                sum_up(group, count)


@pytest.mark.ranks(2)
def test_who_is_interrupted_as_all_have_come_has_the_result(rank: int) -> None:
    """The signal comes while the other rank arrives: both have the result, and the error comes after, and both go on, or neither has."""

    def interrupt(*_: object) -> None:
        raise _Interrupted

    had = []
    for turn in range(40):
        group = groups.enter_world(ME, "test", timeout=20.0)
        tensor = np.full(1, rank + 1, np.float32)
        other = np.array([os.getpid()])
        calls.broadcast(ME, group, other, 0, now=True)
        try:
            if rank == 0:
                signal.signal(signal.SIGUSR1, interrupt)
            calls.barrier(ME, group, now=True)
            if rank == 1:
                time.sleep(0.06)  # until rank 0 sleeps, which looks for signals 20 times a second
                os.kill(int(other[0]), signal.SIGUSR1)
                time.sleep((0.0, 0.01, 0.03, 0.05)[turn % 4])
            calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=True)
        except (_Interrupted, PeerLostError):
            pass
        try:
            if tensor[0] == 3:  # then the ranks are at the same operation
                again = np.full(1, rank + 1, np.float32)
                calls.all_reduce(ME, group, again, again, ReduceOp.SUM, now=True)
                assert again[0] == 3
        finally:
            if rank == 0:
                signal.signal(signal.SIGUSR1, signal.SIG_DFL)
            groups.close_world()
        had.append(bool(tensor[0] == 3))
    with world() as group:
        both = np.empty((2, len(had)), bool)
        calls.all_gather(ME, group, both, np.array(had), now=True)
        assert (both[0] == both[1]).all(), both
