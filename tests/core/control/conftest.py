"""After each test no thread and no file of a control connection is left."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    before = set(os.listdir("/proc/self/fd"))
    yield
    deadline = time.monotonic() + 5
    while left := [thread.name for thread in threading.enumerate() if thread.name.startswith("shim control")]:
        assert time.monotonic() < deadline, f"threads are left: {left}"
        time.sleep(0.005)
    more = len(os.listdir("/proc/self/fd")) - len(before)
    assert more <= 0 or "hosts" in request.node.name, f"{more} more files are open than before"
