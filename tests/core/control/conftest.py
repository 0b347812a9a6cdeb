"""After each test no thread and no file of a control connection is left."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before, threads = len(os.listdir("/proc/self/fd")), set(threading.enumerate())
    yield
    deadline = time.monotonic() + 5
    while left := [
        thread.name for thread in set(threading.enumerate()) - threads if thread.name.startswith("shim control")
    ]:
        assert time.monotonic() < deadline, f"threads are left: {left}"
        time.sleep(0.005)
    more = len(os.listdir("/proc/self/fd")) - before
    assert more <= 0, f"{more} more files are open than before"
