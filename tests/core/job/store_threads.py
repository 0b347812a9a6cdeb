"""What the tests of the stores share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SHORT = 0.05  # seconds in which nothing comes


@contextmanager
def nothing_leaks() -> Iterator[None]:
    threads, descriptors = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
    yield
    assert set(threading.enumerate()) == threads
    assert len(os.listdir("/proc/self/fd")) == descriptors


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
