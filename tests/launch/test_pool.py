"""Pools of rank processes: what comes back from them, how they end, and that nothing of them stays."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

from shim.launch.pool import RankPool


def children() -> set[int]:
    """Return the processes this one has started and that have not been waited for."""
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def test_every_rank_runs_the_function_and_its_value_comes_back_in_rank_order() -> None:
    with RankPool(3) as pool:
        outcomes = pool.run("os:getenv", "SHIM_RANK")
    assert [(outcome.rank, outcome.value, outcome.error) for outcome in outcomes] == [
        (0, "0", None),
        (1, "1", None),
        (2, "2", None),
    ]


def test_processes_are_reused_and_gone_when_the_pool_is_closed() -> None:
    before = children()
    with RankPool(2) as pool:
        first, second = pool.run("os:getpid"), pool.run("os:getpid")
        assert first == second
        assert {outcome.value for outcome in first} == children() - before
    assert children() == before


def test_what_a_rank_raises_is_its_error_and_the_pool_goes_on() -> None:
    with RankPool(2) as pool:
        pids = pool.run("os:getpid")
        failed = pool.run("operator:truediv", 1, 0)
        assert all("ZeroDivisionError" in (outcome.error or "") for outcome in failed)
        assert pool.run("os:getpid") == pids


@pytest.mark.parametrize(
    ("target", "argument", "told"),
    [("os:_exit", 7, "its process exited with status 7"), ("signal:raise_signal", signal.SIGKILL, "killed by SIGKILL")],
)
def test_ranks_that_die_are_told_and_replaced(target: str, argument: int, told: str) -> None:
    with RankPool(2) as pool:
        before = {outcome.value for outcome in pool.run("os:getpid")}
        died = pool.run(target, argument)
        assert [outcome.error for outcome in died] == [f"rank {rank} died: {told}" for rank in (0, 1)]
        assert not before & {outcome.value for outcome in pool.run("os:getpid")}


def test_late_ranks_are_ended_soon_after_the_deadline() -> None:
    before = children()
    with RankPool(2) as pool:
        pool.run("os:getpid")
        started = time.monotonic()
        late = pool.run("time:sleep", 60, deadline=0.3)
        assert time.monotonic() - started < 10
        assert all("had not answered after 0.3 s" in (outcome.error or "") for outcome in late)
        assert children() == before


def test_the_environment_given_reaches_every_rank() -> None:
    with RankPool(2, {"GREETING": "hello"}) as pool:
        assert [outcome.value for outcome in pool.run("os:getenv", "GREETING")] == ["hello", "hello"]


def test_a_pool_has_at_least_one_rank() -> None:
    with pytest.raises(ValueError, match="at least one rank, got 0"):
        RankPool(0)


def test_with_preload_every_run_finds_what_the_imports_left() -> None:
    with RankPool(2, preload=["colorsys"]) as pool:
        parents = [outcome.value for outcome in pool.run("os:getppid")]
        before = pool.run("sys:getrecursionlimit")
        assert pool.run("sys:setrecursionlimit", 5000)[0].error is None
        assert pool.run("sys:getrecursionlimit") == before
        assert len({outcome.value for outcome in [*pool.run("os:getpid"), *pool.run("os:getpid")]}) == 4
        assert [outcome.value for outcome in pool.run("os:getppid")] == parents
        loaded = pool.run("sys:modules.__contains__", "colorsys")
        assert [outcome.value for outcome in loaded] == [True, True]


def test_a_copy_that_dies_is_told_and_its_rank_goes_on() -> None:
    with RankPool(2, preload=["colorsys"]) as pool:
        parents = [outcome.value for outcome in pool.run("os:getppid")]
        died = pool.run("signal:raise_signal", signal.SIGKILL)
        told = "this rank died: its process was killed by SIGKILL"
        assert [outcome.error for outcome in died] == [told, told]
        assert [outcome.value for outcome in pool.run("os:getppid")] == parents


def test_a_late_copy_is_ended_with_its_rank_and_its_stack_is_told() -> None:
    before = children()
    with RankPool(1, preload=["colorsys"]) as pool:
        (late,) = pool.run("time:sleep", 60, deadline=0.5)
        assert late.error is not None
        assert "had not answered after 0.5 s" in late.error
        assert "in _carry_out" in late.error
    assert children() == before


def test_copies_stay_until_all_ranks_have_answered() -> None:
    with RankPool(2, preload=["colorsys"]) as pool:
        for _ in range(3):
            assert [outcome.value for outcome in pool.run(f"{__name__}:rank_zero_lives")] == [None, True]


def rank_zero_lives() -> bool | None:
    """On rank 0, return at once; on rank 1, tell whether rank 0 is still there half a second later."""
    meeting = Path(tempfile.gettempdir()) / f"shim-{os.environ['SHIM_JOB']}"
    if os.environ["SHIM_RANK"] == "0":
        meeting.write_text(str(os.getpid()))
        return None
    while not meeting.exists() or not meeting.read_text():
        time.sleep(0.01)
    time.sleep(0.5)
    lives = "zombie" not in Path(f"/proc/{meeting.read_text()}/status").read_text()
    meeting.unlink()
    return lives
