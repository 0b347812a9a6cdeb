"""What the tests of the stores share."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SHORT = 0.05  # seconds in which nothing comes


@contextmanager
def nothing_leaks() -> Iterator[None]:
    """Check that what the block starts and opens is gone soon after it. What an earlier test left may go meanwhile."""
    threads, descriptors = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
    yield
    until = time.monotonic() + 10
    while not set(threading.enumerate()) <= threads or len(os.listdir("/proc/self/fd")) > descriptors:
        assert time.monotonic() < until, f"left: {set(threading.enumerate()) - threads}, {os.listdir('/proc/self/fd')}"
        time.sleep(0.01)


def in_thread(call: Callable[[], Any]) -> Callable[[], Any]:
    """Start *call* and return what waits for it and returns its result, or its exception."""
    ended: list[Any] = []

    def run() -> None:
        try:
            ended.append(call())
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def result() -> Any:
        thread.join(30)
        return ended[0]

    return result
