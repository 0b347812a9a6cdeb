"""Ranks that wait for each other in a circle are named in the report of a wait; others are not."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.job.stores.tcp import TCPStore
from shim.errors import CollectiveTimeoutError

pytestmark = pytest.mark.engine("shared_memory")  # the others do not look for that

ME = Caller("test")
LONG = array("d", bytes(8 << 18))  # more than a channel holds
CIRCLE = "they wait for each other"


@contextmanager
def world() -> Iterator[tuple[ProcessGroup, ProcessGroup]]:
    """The world, and a group in which a wait of rank 0 is over after a second and is to be reported."""
    try:
        all_ranks = groups.enter_world(ME, "test", timeout=60.0)
        first = groups.new_group(ME, all_ranks.ranks, name="first", timeout=1.0 if all_ranks.rank == 0 else 60.0)
        calls.barrier(ME, all_ranks).wait()
        yield all_ranks, first
        calls.barrier(ME, all_ranks).wait()
    finally:
        groups.close_world()


def report_of(wait: Callable[[], object]) -> str:
    with pytest.raises(CollectiveTimeoutError) as raised:
        wait()
    return str(raised.value)


def barrier(group: ProcessGroup) -> None:
    calls.barrier(ME, group).wait()


def started_barrier(group: ProcessGroup) -> None:
    calls.barrier(ME, group).start().wait()


def receive(group: ProcessGroup) -> None:
    calls.receive(ME, group, array("d", [0.0]), 1).wait()


def send(group: ProcessGroup) -> None:
    calls.send(ME, group, LONG, 1).wait()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("wait", [barrier, started_barrier, receive, send])
def test_two_ranks_in_two_groups(rank: int, wait: Callable[[ProcessGroup], None]) -> None:
    with world() as (everybody, first):
        if rank == 1:
            return barrier(everybody)
        told = (
            f"rank 0 waits in group 'first' for rank 1, which waits in group {everybody.name!r} for rank 0: {CIRCLE}\n"
        )
        assert f"\n  {told}" in report_of(lambda: wait(first))
        return barrier(everybody)


@pytest.mark.ranks(2)
def test_messages_that_both_ranks_wait_for(rank: int) -> None:
    """A store's thread, which makes no calls, is no other thread of the program."""
    with world() as (everybody, first), closing(TCPStore("localhost", 0, is_server=True)):
        if rank == 1:
            return calls.receive(ME, everybody, array("d", [0.0]), 0).wait()
        told = (
            f"rank 0 waits in group 'first' for rank 1, which waits in group {everybody.name!r} for rank 0: {CIRCLE}\n"
        )
        assert told in report_of(lambda: receive(first))
        return calls.send(ME, everybody, array("d", [1.0]), 1).wait()


@pytest.mark.ranks(3)
def test_three_ranks(rank: int) -> None:
    """The one that reports is no member of the second group."""
    with world() as (everybody, first):
        pair = groups.new_group(ME, [1, 2])
        if rank == 0:
            told = report_of(lambda: receive(first))
            calls.send(ME, everybody, array("d", [1.0]), 2).wait()
            assert (
                f"rank 0 waits in group 'first' for rank 1, which waits in group {pair.name!r} for rank 2, "
                f"which waits in group {everybody.name!r} for rank 0: {CIRCLE}\n" in told
            )
        if rank == 1:
            barrier(pair)
        if rank == 2:
            calls.receive(ME, everybody, array("d", [0.0]), 0).wait()
            barrier(pair)


def compute(group: ProcessGroup) -> None:
    time.sleep(1.2)
    barrier(group)


def start(group: ProcessGroup) -> None:
    work = calls.barrier(ME, group).start()
    time.sleep(1.2)  # goes on: it may come to the first group after this
    work.wait()


def wait_behind_another(group: ProcessGroup) -> None:
    """The message is waited for, while what the other one waits for has been started, and comes by itself."""
    work = calls.barrier(ME, group).start()
    calls.receive(ME, group, array("d", [0.0]), 0).wait()
    work.wait()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("other", [compute, start, wait_behind_another])
def test_who_may_still_come_is_in_no_circle(rank: int, other: Callable[[ProcessGroup], None]) -> None:
    with world() as (everybody, first):
        if rank == 1:
            return other(everybody)
        told = report_of(lambda: barrier(first))
        assert "not arrived: rank 1" in told
        assert CIRCLE not in told
        if other is wait_behind_another:
            calls.send(ME, everybody, array("d", [1.0]), 1).wait()
        return barrier(everybody)


@contextmanager
def thread_that_waits() -> Iterator[None]:
    is_over = threading.Event()
    thread = threading.Thread(target=is_over.wait)
    thread.start()
    yield
    is_over.set()
    thread.join()


@contextmanager
def thread_of_cpp() -> Iterator[None]:
    """What Python knows of a thread of a library's, such as one of torch's autograd, that runs no Python code now."""
    python = ctypes.pythonapi
    python.PyInterpreterState_Get.restype = python.PyThreadState_New.restype = ctypes.c_void_p
    state = ctypes.c_void_p(python.PyThreadState_New(ctypes.c_void_p(python.PyInterpreterState_Get())))
    yield
    python.PyThreadState_Clear(state)
    python.PyThreadState_Delete(state)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("another_thread", [thread_that_waits, thread_of_cpp])
def test_that_another_thread_may_end_a_circle_is_said(rank: int, another_thread: Callable[[], Any]) -> None:
    with world() as (everybody, first):
        if rank == 0:
            assert (
                f"{CIRCLE}, unless another thread or a signal handler of theirs makes the missing call\n"
                in report_of(lambda: barrier(first))
            )
            return barrier(everybody)
        with another_thread():
            return barrier(everybody)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("how", ["started", "in a thread", "in a signal handler"])
def test_a_group_is_made_though_ranks_seem_to_wait_for_each_other(rank: int, how: str) -> None:
    """Rank 0 is in a barrier for which rank 1 comes later, and goes on to make the group only after 2.5 s."""
    with world() as (everybody, _):
        if rank == 1:
            groups.new_group(ME, [0, 1], name="made")
            return barrier(everybody)
        if how == "in a signal handler":
            return make_group_in_a_handler(everybody)
        work = calls.barrier(ME, everybody)
        thread = threading.Thread(target=work.wait)
        thread.start() if how == "in a thread" else work.start()
        time.sleep(2.5)
        groups.new_group(ME, [0, 1], name="made")
        return thread.join() if how == "in a thread" else work.wait()


def make_group_in_a_handler(everybody: ProcessGroup) -> None:
    before = signal.signal(signal.SIGALRM, lambda *_: groups.new_group(ME, [0, 1], name="made"))
    signal.setitimer(signal.ITIMER_REAL, 2.5)
    barrier(everybody)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.ranks(2)
def test_the_meeting_for_a_group_tells_of_a_circle_that_a_thread_may_end(rank: int) -> None:
    with world() as (everybody, _):
        if rank == 1:
            return barrier(everybody)
        is_over = threading.Event()
        thread = threading.Thread(target=is_over.wait)
        thread.start()
        told = report_of(lambda: groups.new_group(ME, [0, 1], name="late", timeout=2.5))
        is_over.set()
        thread.join()
        barrier(everybody)
        assert (
            "rank 0 waits to make group 'late' of ranks 0, 1 for rank 1, "
            f"which waits in group {everybody.name!r} for rank 0: {CIRCLE}, unless another" in told
        )
        return None
