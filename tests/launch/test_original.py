"""Ranks that are copies of a process: what they have, how they end, and that nothing of them stays."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_pool import children

from shim.launch.original import Original
from shim.launch.pool import RankPool


@pytest.fixture(scope="module")
def original() -> Iterator[Original]:
    with Original(["colorsys"], {"GREETING": "hello"}) as made:
        yield made


def values(pool: RankPool, target: str, *arguments: object) -> list[object]:
    outcomes = pool.run(target, *arguments)
    assert [outcome.error for outcome in outcomes] == [None] * pool.size
    return [outcome.value for outcome in outcomes]


def test_copies_have_what_was_imported_and_are_ranks(original: Original) -> None:
    with RankPool(2, original=original) as pool:
        assert values(pool, "sys:modules.__contains__", "colorsys") == [True, True]
        assert values(pool, "os:getenv", "SHIM_RANK") == ["0", "1"]
        assert values(pool, "os:getenv", "GREETING") == ["hello", "hello"]
        assert len(set(values(pool, "os:getpid"))) == 2
        assert len(set(values(pool, "os:getppid"))) == 1


def test_what_ranks_do_stays_with_them(original: Original) -> None:
    with RankPool(2, original=original) as pool:
        before = values(pool, "sys:getrecursionlimit")
        values(pool, "sys:setrecursionlimit", 5000)
        assert values(pool, "sys:getrecursionlimit") == [5000, 5000]
    with RankPool(3, {"GREETING": "goodbye"}, original) as pool:
        assert values(pool, "sys:getrecursionlimit") == before[:1] * 3
        assert values(pool, "os:getenv", "GREETING") == ["goodbye"] * 3


def test_a_copy_that_dies_is_told_and_others_can_be_made(original: Original) -> None:
    with RankPool(2, original=original) as pool:
        for target, argument, told in (
            ("signal:raise_signal", signal.SIGKILL, "killed by SIGKILL"),
            ("os:_exit", 7, "its process exited with status 7"),
        ):
            parents = values(pool, "os:getppid")
            died = pool.run(target, argument)
            assert [outcome.error for outcome in died] == [f"rank {rank} died: {told}" for rank in (0, 1)]
            assert values(pool, "os:getppid") == parents


def test_a_late_copy_is_ended_and_its_stack_is_told(original: Original) -> None:
    with RankPool(1, original=original) as pool:
        (pid,) = values(pool, "os:getpid")
        (late,) = pool.run("time:sleep", 60, deadline=0.5)
        assert late.error is not None
        assert "had not answered after 0.5 s" in late.error
        assert "in _carry_out" in late.error
        assert not Path(f"/proc/{pid}").exists()


def test_copies_stay_as_long_as_their_pool(original: Original) -> None:
    with RankPool(2, original=original) as pool:
        for _ in range(3):
            assert values(pool, f"{__name__}:rank_zero_lives") == [None, True]
        pids = values(pool, "os:getpid")
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def rank_zero_lives() -> bool | None:
    """On rank 0, return at once; on rank 1, tell whether rank 0 is still there half a second later."""
    meeting = Path(tempfile.gettempdir()) / f"shim-{os.environ['SHIM_JOB']}"
    if os.environ["SHIM_RANK"] == "0":
        meeting.write_text(str(os.getpid()))
        return None
    while not meeting.exists() or not meeting.read_text():
        time.sleep(0.01)
    time.sleep(0.2)
    lives = "zombie" not in Path(f"/proc/{meeting.read_text()}/status").read_text()
    meeting.unlink()
    return lives


def test_several_threads_have_copies(original: Original) -> None:
    pids: list[object] = []

    def use() -> None:
        with RankPool(2, original=original) as pool:
            values(pool, "time:sleep", 0.1)
            pids.extend(values(pool, "os:getpid"))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(set(pids)) == 8


def test_nothing_stays() -> None:
    before = children()
    with Original(["colorsys"]) as original, RankPool(2, original=original) as pool:
        pids = values(pool, "os:getpid")
        assert len(children() - before) == 1
    assert children() == before
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_an_original_that_cannot_import_says_why() -> None:
    with (
        Original(["no_such_module"]) as original,
        RankPool(1, original=original) as pool,
        pytest.raises(RuntimeError, match=r"(?s)imports no_such_module.*ModuleNotFoundError: No module named"),
    ):
        pool.run("os:getpid")


def test_waiting_has_an_end(original: Original) -> None:
    with RankPool(1, original=original) as pool:
        pool.run("os:getpid")
        (rank,) = pool._ranks
        with pytest.raises(subprocess.TimeoutExpired):
            rank.process.wait(0.05)
