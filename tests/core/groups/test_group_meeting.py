"""Ranks that wait for each other to make a group notice when one of them has gone from the world."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.own_ranks

PROGRAM = """
import os, sys, time
from shim.core import groups
from shim.core.callers import Caller
from shim.errors import PeerLostError

me = Caller("test")
world = groups.enter_world(me, "test", rank=int(sys.argv[1]), world_size=3, init_method=sys.argv[2], timeout=30)
groups.new_group(me, [2])
if world.rank == 1:
    if sys.argv[3] == "dies":
        os.kill(os.getpid(), 9)
    elif sys.argv[3] == "leaves":
        groups.close_world()
    sys.exit(0)
begin = time.monotonic()
try:
    groups.new_group(me, [0, 1, 2], name=sys.argv[4] or None)
except PeerLostError as error:
    print(time.monotonic() - begin < 5, error.ranks, "went before" in str(error), flush=True)
    time.sleep(2)  # or the other would see this one go first
"""


@pytest.mark.parametrize("name", ["", "of members"])
@pytest.mark.parametrize("how", ["dies", "leaves", "ends"])
def test_a_rank_that_goes_is_noticed(how: str, name: str, tmp_path: object) -> None:
    meeting = f"file://{tmp_path}/meeting"
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), meeting, how, name], stdout=subprocess.PIPE, text=True
        )
        for rank in range(3)
    ]
    printed = [rank.communicate(timeout=300)[0].strip() for rank in ranks]
    assert [printed[0], printed[2]] == [f"True (1,) {bool(name)}"] * 2
    assert ranks[1].returncode == (-signal.SIGKILL if how == "dies" else os.EX_OK)


def test_who_died_is_named_before_who_left_for_it(tmp_path: object) -> None:
    program = PROGRAM.replace("    time.sleep(2)", "    sys.exit(0)").replace(
        "begin = time", "if world.rank == 2: time.sleep(3)\nbegin = time"
    )
    command = [sys.executable, "-c", program]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), f"file://{tmp_path}/meeting", "dies", "of members"], stdout=subprocess.PIPE, text=True
        )
        for rank in range(3)
    ]
    printed = [rank.communicate(timeout=300)[0].strip() for rank in ranks]
    assert [printed[0], printed[2]] == ["True (1,) True"] * 2
