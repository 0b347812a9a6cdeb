"""Ranks that call a function of the program that starts them."""

from __future__ import annotations

import multiprocessing
import operator
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing import popen_fork
from typing import Any

import pytest

from shim.errors import ArgumentError, PeerLostError
from shim.launch import spawning
from shim.launch.spawning import RankFailedError, SpawnedRanks


def spawn(
    func: Callable[..., Any],
    arguments: tuple[Any, ...],
    join: bool = True,
    kind: type[SpawnedRanks] = SpawnedRanks,
    **environments: str,
) -> SpawnedRanks:
    """Start ranks by fork, which have nothing but their *environments* in theirs, and *join* them."""
    return kind("test", func, arguments, [{"ME": me} for me in environments.values()], "fork", False, join)


def fail(others: str) -> None:
    """Raise one's own error as rank b, and as another what *others* says."""
    if os.environ["ME"] == "b":
        raise ValueError("no PeerLostError: b's own")
    if others == "lost":
        raise PeerLostError("b has gone")
    try:
        raise PeerLostError("b has gone")
    except PeerLostError as error:
        if others == "cause":
            raise RuntimeError("wrapped") from error
        raise RuntimeError("while that was dealt with")  # noqa: B904  # which is what the test is about


def fail_with(raised: type[BaseException]) -> None:
    """Raise it as rank a."""
    if os.environ["ME"] == "a":
        raise raised("rank a's own")


def test_what_ranks_return() -> None:
    ranks = spawn(os.getenv, ("ME",), first="a", second="b")
    assert [queue.get() for queue in ranks.return_queues] == ["a", "b"]
    assert all(queue.empty() for queue in ranks.error_queues)
    assert ranks.sentinels == {}


@pytest.mark.parametrize("others", ["lost", "cause", "context"])
def test_a_rank_that_another_pulled_down_is_not_the_first_to_fail(others: str) -> None:
    with pytest.raises(RankFailedError, match=r"^test: rank 1 of 2 raised an error:[\s\S]*b's own$"):
        spawn(fail, (others,), first="a", second="b")
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("raised", [pytest.fail.Exception, GeneratorExit])
def test_a_rank_tells_what_is_no_exception_too(raised: type[BaseException]) -> None:
    with pytest.raises(RankFailedError, match=r"^test: rank 0 of 2 raised an error:[\s\S]*rank a's own$"):
        spawn(fail_with, (raised,), first="a", second="b")


def test_a_rank_that_ends_itself_has_the_status_it_chose() -> None:
    with pytest.raises(RankFailedError, match=r"^test: rank 0 of 1 ended with status 7$"):
        spawn(sys.exit, (7,), first="a")


def test_ranks_that_do_not_end_are_killed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawning, "GRACE", 1.0)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which they inherit
    try:
        ranks = spawn(time.sleep, (50,), join=False, first="a", second="b", third="c", fourth="d")
    finally:
        signal.signal(signal.SIGTERM, before)
    begin = time.monotonic()
    ranks.end()
    assert 1 <= time.monotonic() - begin < 3.9  # one second, and not four
    assert [process.exitcode for process in ranks.processes] == [-signal.SIGKILL] * 4


def test_a_rank_whose_start_is_interrupted_is_not_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    launch, started = popen_fork.Popen._launch, []

    def interrupted(popen: Any, process: Any) -> None:
        launch(popen, process)
        started.append(popen.pid)
        if len(started) == 2:  # before the process object has heard of it
            raise KeyboardInterrupt

    monkeypatch.setattr(popen_fork.Popen, "_launch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        spawn(time.sleep, (20,), first="a", second="b")
    since = time.monotonic()
    assert os.waitstatus_to_exitcode(os.waitpid(started[1], 0)[1]) == 1
    assert time.monotonic() - since < 10
    assert multiprocessing.active_children() == []


class InterruptedOnceStarted(SpawnedRanks):
    """Ctrl-C comes when all ranks have begun and nobody waits for them yet."""

    @property
    def error_queues(self) -> list[Any]:
        return []

    @error_queues.setter
    def error_queues(self, queues: list[Any]) -> None:
        raise KeyboardInterrupt


def test_ranks_are_ended_whenever_the_interrupt_comes() -> None:
    since = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        spawn(time.sleep, (50,), kind=InterruptedOnceStarted, first="a", second="b")
    assert multiprocessing.active_children() == []
    assert time.monotonic() - since < 40


def test_what_cannot_be_sent_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^func and args must be picklable"):
        SpawnedRanks("test", operator.not_, (lambda: None,), [{}, {}], "spawn", False)
    assert multiprocessing.active_children() == []
