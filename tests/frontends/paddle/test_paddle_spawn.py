"""``spawn`` starts ranks of this host, tells of the one that failed, and leaves none behind."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import spawned_functions as functions
from paddle_world import VERSIONS
from wrong_calls import assert_refused

from shim.errors import UnsupportedError

dist = VERSIONS["3"]


def values(context: Any) -> list[Any]:
    return [queue.get() for queue in context.return_queues]


def join_all(context: Any) -> None:
    while not context.join(timeout=30):
        pass


def assert_gone(context: Any) -> None:
    assert not any(process.is_alive() for process in context.processes)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("count", "start_method"), [(2, None), (1, "spawn"), (3, "fork"), (2, "forkserver")])
def test_ranks_run_and_return(version: str, count: int, start_method: str | None) -> None:
    context = VERSIONS[version].spawn(functions.sum_up, args=[10, 2.0], nprocs=count, start_method=start_method)
    total = sum(2.0 * (10 + rank) for rank in range(count))
    assert all(queue.empty() for queue in context.error_queues)
    assert values(context) == [(rank, total) for rank in range(count)]
    assert context.join() is True
    assert_gone(context)
    with pytest.raises(EOFError):
        context.error_queues[0].get()


@pytest.mark.engine("shared_memory")  # the others do not look for circles
def test_threads_of_the_launcher_keep_no_circle_from_being_proved() -> None:
    told, _ = values(dist.spawn(functions.wait_in_a_circle, nprocs=2, start_method="forkserver"))
    assert "they wait for each other\n" in told


def test_what_ranks_are_told() -> None:
    context = dist.spawn(functions.describe, nprocs=2, gpus="5,3", ips="127.0.0.1", backend="gloo")
    expected = {"size": 2, "endpoints": 2, "backend": "gloo", "parent": os.getpid()}
    assert values(context) == [
        {"rank": 0, "device": 5, "endpoint": 0, "trainer": "0", **expected},
        {"rank": 1, "device": 3, "endpoint": 1, "trainer": "1", **expected},
    ]


def test_as_many_ranks_as_there_are_devices_or_processors() -> None:
    assert len(dist.spawn(functions.describe, xpus="0, 1").processes) == 2
    assert len(dist.spawn(functions.describe).processes) == len(os.sched_getaffinity(0))


def test_joining_later() -> None:
    context = dist.spawn(functions.sum_up, (1.0,), 2, join=False, daemon=True)
    assert all(process.daemon for process in context.processes)
    assert context.return_queues[1].get() == (1, 3.0)
    join_all(context)
    assert context.return_queues[0].get() == (0, 3.0)
    assert_gone(context)


def values_of_much(count: int) -> list[bytes]:
    return values(dist.spawn(functions.give_back_much, (count,), 2))


def test_more_than_a_pipe_holds_comes_back() -> None:
    assert values_of_much(3_000_000) == [b"\0" * 3_000_000, b"\1" * 3_000_000]


def test_a_rank_may_spawn_but_not_fork() -> None:
    dist.init_parallel_env()
    try:
        with pytest.raises(RuntimeError, match="start_method must not be fork"):
            dist.spawn(functions.sum_up, (1.0,), 2, start_method="fork")
        assert values(dist.spawn(functions.sum_up, (1.0,), 2)) == [(0, 3.0), (1, 3.0)]
        assert dist.get_world_size() == 1
    finally:
        dist.destroy_process_group()


def test_a_thread_may_spawn() -> None:
    contexts: list[Any] = []
    thread = threading.Thread(target=lambda: contexts.append(dist.spawn(functions.sum_up, (0,), 2, join=False)))
    thread.start()
    thread.join()
    join_all(contexts[0])
    assert values(contexts[0]) == [(0, 1.0), (1, 1.0)]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raise", r"rank 1 of 3 raised an error:[\s\S]*in fail_on[\s\S]*\{input\} is not \{there\}"),
        ("words", "RuntimeError: no PeerLostError: of my own"),
        ("interrupt", "rank 1 of 3 was interrupted"),
        ("linger", "KeyError: 'slowly'"),
        ("exit", "rank 1 of 3 ended with status 3"),
        ("kill", "rank 1 of 3 was killed by SIGKILL"),
    ],
)
def test_the_rank_that_failed_first_is_told(how: str, words: str) -> None:
    context = dist.spawn(functions.fail_on, (1, how), 3, join=False)
    told = assert_refused(Exception, words, join_all, context)
    assert told.startswith("paddle.distributed.spawn: rank 1")
    assert_gone(context)
    assert context.join() is True


def test_a_rank_that_ignores_its_end_is_killed() -> None:
    since = time.monotonic()
    with pytest.raises(RuntimeError, match="ValueError: over"):
        dist.spawn(functions.ignore_the_end, nprocs=2)
    assert time.monotonic() - since < 30
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("start_method", ["spawn", "fork", "forkserver"])
def test_ranks_end_with_the_process_that_started_them(number: signal.Signals, start_method: str) -> None:
    program = f"from spawned_functions import spawn_sleepers; spawn_sleepers({start_method!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout is not None
        handles = [os.pidfd_open(int(parent.stdout.readline())) for _ in range(2)]
        parent.send_signal(number)
        for handle in handles:
            assert select.select([handle], [], [], 30)[0] == [handle]
            os.close(handle)
        assert parent.wait(30) != 0


def test_a_rank_whose_child_lives_on_has_ended(tmp_path: Path) -> None:
    handle = tmp_path / "child"
    try:
        with pytest.raises(RuntimeError, match="rank 0 of 1 ended with status 4"):
            dist.spawn(functions.leave_a_child, (str(handle),), 1)
    finally:
        os.kill(int(handle.read_text()), signal.SIGKILL)


def test_what_cannot_be_returned_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="pickle"):
        dist.spawn(functions.cannot_give_back, nprocs=1)


def test_nothing_is_left_when_a_rank_cannot_start() -> None:
    with pytest.raises(Exception, match="pickle"):
        dist.spawn(lambda: None, nprocs=2)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("kind", "words", "arguments"),
    [
        (ValueError, "the options are start_method", {"threads": 2}),
        (ValueError, "start_method", {"start_method": "clone"}),
        (ValueError, "nprocs", {"nprocs": 0}),
        (TypeError, "nprocs", {"nprocs": "2"}),
        (ValueError, "as many as there are devices, 3", {"nprocs": 2, "gpus": "0,1,2"}),
        (ValueError, "gpus", {"gpus": "a,b"}),
        (ValueError, "both", {"gpus": "0", "xpus": "0"}),
        (ValueError, "backend", {"backend": "smoke"}),
        (UnsupportedError, "gpus or xpus", {"selected_devices": "0"}),
        (UnsupportedError, "print_config", {"print_config": True}),
        (UnsupportedError, "spawn starts its ranks", {"ips": "192.0.2.1,192.0.2.2"}),
        (UnsupportedError, "not this host", {"ips": "192.0.2.1"}),
        (TypeError, "func", {"func": 3}),
    ],
)
def test_wrong_arguments(kind: type[Exception], words: str, arguments: dict[str, Any]) -> None:
    assert_refused(kind, words, dist.spawn, **{"func": functions.sleep, **arguments})
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("func", "args", "told"),
    [(print, 5, "args must be a tuple"), (lambda: None, (), "func and args must be picklable"), (3, (), "callable")],
    ids=["args", "func", "no function"],
)
def test_what_cannot_be_sent_to_a_process_is_refused(func: Any, args: Any, told: str) -> None:
    with pytest.raises(TypeError, match=f"^paddle.distributed.spawn: .*{told}"):
        dist.spawn(func, args=args, nprocs=2)
