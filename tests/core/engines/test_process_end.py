"""A process ends well, and says nothing, whatever its daemon threads wait for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.own_ranks

PROGRAM = """
import contextlib, sys, threading, time
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.errors import ShimError

me = Caller("test")
rank, meeting, what = int(sys.argv[1]), sys.argv[2], sys.argv[3]
world = groups.enter_world(me, "test", rank=rank, world_size=2, init_method=meeting, timeout=60)
waits = {
    "a message": lambda: calls.receive(me, world, bytearray(3), 1).wait(),
    "a collective": lambda: calls.barrier(me, world).wait(),
    "a started collective": lambda: calls.barrier(me, world).start().wait(),
    "a group": lambda: groups.new_group(me, [0, 1], name="two"),
}
def wait():
    with contextlib.suppress(ShimError):  # the world may be closed, which ends the wait, before the interpreter is
        waits[what]()

if rank == 0:
    for _ in range(3):
        threading.Thread(target=wait, daemon=True).start()
    time.sleep(0.3)
else:
    sys.stdin.read()
"""


@pytest.mark.parametrize("what", ["a message", "a collective", "a started collective", "a group"])
def test_daemon_threads_that_wait_for(what: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM]
    arguments = [f"file://{tmp_path}/meeting", what]
    with subprocess.Popen([*command, "1", *arguments], stdin=subprocess.PIPE) as other:
        ended = subprocess.run([*command, "0", *arguments], capture_output=True, text=True, timeout=300, check=False)
        other.communicate(timeout=300)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
