"""Ranks of a job as threads of this process, each with control connections of its own over real sockets."""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from shim.core.control import Control, Meeting, meet

SECRET = b"sixteen characters or more"
_keys = itertools.count()


def new_job(size: int, address: str = "", secret: bytes = b"") -> Meeting:
    """Return the meeting of rank 0 of a job that no other test has."""
    return Meeting(0, size, f"test {os.getpid()} {next(_keys)}", address, secret)


def free_address() -> str:
    """Return a loopback address whose port is free, with the next ones probably."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{min(probe.getsockname()[1], 65500)}"


def on_each(ranks: Sequence[int], function: Callable[[int], Any]) -> dict[int, Any]:
    """Call *function* with each of the *ranks* at once, and return what each returns or raises."""
    results: dict[int, Any] = {}

    def run(rank: int) -> None:
        try:
            results[rank] = function(rank)
        except BaseException as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads), "a rank hangs"
    return results


def meet_as(job: Meeting, ranks: Sequence[int], timeout: float = 10.0, **options: Any) -> dict[int, Any]:
    """Let these *ranks* of *job* meet, and return what each gets or raises."""
    return on_each(ranks, lambda rank: meet(replace(job, rank=rank, facts=b"facts of %d" % rank), timeout, **options))


@contextmanager
def world(size: int, address: str = "", secret: bytes = b"") -> Iterator[list[Control]]:
    """Give the control connections of a job's ranks, which are closed at the end."""
    met = meet_as(new_job(size, address, secret), range(size))
    controls = [met[rank] for rank in range(size)]
    assert all(isinstance(control, Control) for control in controls), controls
    try:
        yield controls
    finally:
        for control in reversed(controls):
            control.close()


def assert_soon(is_true: Callable[[], object], within: float = 5.0) -> None:
    """Fail unless it comes to be true within so many seconds."""
    deadline = time.monotonic() + within
    while not is_true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.002)
