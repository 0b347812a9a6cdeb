"""Ranks that are copies of a process: what they have, how they end, and that nothing of them stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from child_processes import children

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


def test_copies_draw_random_numbers_of_their_own() -> None:
    with Original(["random", "numpy.random"]) as original, RankPool(2, original=original) as pool:
        for target in ("random:random", "numpy.random:rand"):
            assert len(set(values(pool, target))) == 2


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


def test_the_thread_that_starts_an_original_may_end_before_it() -> None:
    with Original(["colorsys"]) as original, RankPool(2, original=original) as pool:
        starter = threading.Thread(target=original.start)
        before = children()
        starter.start()
        starter.join(60)
        (pid,) = children() - before
        time.sleep(0.1)
        assert values(pool, "os:getppid") == [pid, pid]


def test_a_pool_outlives_the_death_of_its_original() -> None:
    with Original(["colorsys"]) as original, RankPool(2, original=original) as pool:
        (pid,) = set(values(pool, "os:getppid"))
        died = pool.run(kill_the_original)
        assert [outcome.error for outcome in died] == [f"rank {rank} died: killed by SIGKILL" for rank in (0, 1)]
        assert pid not in values(pool, "os:getppid")
        os.kill(pool.run("os:getppid")[0].value, signal.SIGKILL)
        (rank, _) = pool._ranks
        assert rank.process.wait(10) == -signal.SIGKILL
        rank.process.send_signal(signal.SIGUSR1)


def test_an_answer_that_nobody_waited_for_is_none_to_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with Original(["colorsys"]) as original, RankPool(1, original=original) as pool:
        (parent,) = values(pool, "os:getppid")
        monkeypatch.setattr("multiprocessing.connection.Connection.recv", interrupted)
        with pytest.raises(KeyboardInterrupt):
            original.copy(0, 1, 2, {})
        monkeypatch.undo()
        assert pool.run("os:getpid")[0].error == "rank 0 died: killed by SIGKILL"
        assert values(pool, "os:getppid") != [parent]


def kill_the_original() -> None:
    if os.environ["SHIM_RANK"] == "0":
        os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


LEAVES_COPIES = """
import os, signal
from shim.launch.original import Original
from shim.launch.pool import RankPool

pool = RankPool(2, original=Original(["colorsys"]))
print(*(outcome.value for target in ("os:getpid", "os:getppid") for outcome in pool.run(target)), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_an_original_and_its_copies_end_with_the_process_that_started_it() -> None:
    done = subprocess.run([sys.executable, "-c", LEAVES_COPIES], stdout=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == -signal.SIGKILL
    pids = set(done.stdout.split())
    assert len(pids) == 3
    until = time.monotonic() + 10
    while any(map(is_running, pids)) and time.monotonic() < until:
        time.sleep(0.01)
    assert [pid for pid in pids if is_running(pid)] == []


def is_running(pid: str) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


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


def test_how_an_original_died_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deadly.py").write_text("import signal\nsignal.raise_signal(signal.SIGKILL)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    told = r"imports deadly: it was killed by SIGKILL\n"
    with Original(["deadly"]) as original, pytest.raises(RuntimeError, match=told):
        original.start()


def test_waiting_has_an_end(original: Original) -> None:
    with RankPool(1, original=original) as pool:
        pool.run("os:getpid")
        (rank,) = pool._ranks
        with pytest.raises(subprocess.TimeoutExpired):
            rank.process.wait(0.05)
