"""Pools of rank processes: what comes back from them, how they end, and that nothing of them stays."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import Any

import pytest
from child_processes import children

from shim.launch.pool import RankPool


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
        assert pool.job == ""
        first = pool.run("os:getpid")
        job = pool.job
        second = pool.run("os:getpid")
        assert job
        assert pool.job == job
        assert first == second
        assert {outcome.value for outcome in first} == children() - before
    assert children() == before
    assert pool.job == ""
    with pool:
        pool.run("os:getpid")
        assert pool.job not in ("", job)


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


class Unreadable:
    """What can be pickled, and cannot be read again."""

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return int, ("no number",)


def unreadable_on_rank_0() -> object:
    return Unreadable() if os.environ["SHIM_RANK"] == "0" else "old"


def test_an_answer_that_cannot_be_read_leaves_none_to_the_next_run() -> None:
    before = children()
    with RankPool(2) as pool:
        with pytest.raises(ValueError, match="no number"):
            pool.run(unreadable_on_rank_0)
        assert children() == before
        assert [outcome.value for outcome in pool.run("os:getenv", "SHIM_RANK")] == ["0", "1"]


def test_ranks_of_which_one_cannot_be_started_are_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    before, started = children(), []

    class SecondFails(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            started.append(self)
            if len(started) == 2:
                raise BlockingIOError("no more processes")
            super().__init__(*arguments, **keywords)

    monkeypatch.setattr(subprocess, "Popen", SecondFails)
    with RankPool(2) as pool:
        with pytest.raises(BlockingIOError):
            pool.run("os:getpid")
        assert children() == before
        assert [outcome.value for outcome in pool.run("os:getenv", "SHIM_RANK")] == ["0", "1"]


def test_output_that_is_read_in_pieces_has_whole_characters() -> None:
    program = "import os, time\nfor byte in 'é'.encode():\n    os.write(1, bytes([byte]))\n    time.sleep(0.3)"
    printed: list[str] = []
    with RankPool(1) as pool:
        pool.begin("builtins:exec", program)
        while pool.is_busy:
            printed += pool.new_output().values()
            printed += [outcome.printed for outcome in pool.answers(0.05).values() if outcome is not None]
    assert [text for text in printed if text] == ["é"]


def test_a_task_that_forks_is_answered_by_its_own_process_and_the_next_too() -> None:
    with RankPool(1) as pool:
        (forked,) = pool.run("os:fork")
        own, again = pool.run("os:getpid"), pool.run("os:getpid")
    assert forked.error is None
    assert forked.value > 0
    assert own[0].value == again[0].value != forked.value


def test_an_interrupt_reaches_ranks_that_have_not_answered() -> None:
    program = "import os, signal, time\nif os.environ['RANK'] == '1':\n    signal.signal(2, signal.default_int_handler)\n    print('ready', flush=True)\n    time.sleep(60)"
    with RankPool(2) as pool:
        pool.begin("builtins:exec", program)
        while not pool.new_output()[1]:
            time.sleep(0.05)
        first = pool.answers(60)
        pool.interrupt()
        second = pool.answers(60)
        assert not pool.is_busy
    outcomes = [*first.values(), *second.values()]
    assert [(each.rank, "KeyboardInterrupt" in (each.error or "")) for each in outcomes if each] == [
        (0, False),
        (1, True),
    ]


def test_long_output_is_cut_and_does_not_show_later() -> None:
    with RankPool(1) as pool:
        (long,) = pool.run("builtins:print", "x" * (1 << 21))
        (short,) = pool.run("builtins:print", "short")
    assert long.printed.startswith("(1048577 bytes before this are not shown)\nx")
    assert long.printed.endswith("x\n")
    assert short.printed == "short\n"
