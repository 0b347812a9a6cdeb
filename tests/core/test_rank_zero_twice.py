"""Two processes that both were told to be rank 0 learn it soon."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys, time
from shim.core import groups
from shim.core.callers import Caller
from shim.errors import StateError

begin = time.monotonic()
try:
    groups.enter_world(Caller("test"), "test", rank=int(sys.argv[1]), world_size=3, init_method=sys.argv[2], timeout=60)
except StateError as error:
    print(time.monotonic() - begin < 20, "two processes are rank 0" in str(error))
"""


def test_both_are_told(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, "0", f"file://{tmp_path}/meeting"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=100)[0].strip() for process in processes] == ["True True"] * 2
