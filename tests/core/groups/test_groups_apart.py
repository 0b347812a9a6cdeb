"""Groups of processes that have nothing to do with the world."""

from __future__ import annotations

import subprocess
import sys

import pytest

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.errors import ArgumentError, StateError

ME = Caller("test")


@pytest.mark.ranks(3)
def test_a_group_apart_from_the_world(rank: int) -> None:
    world = groups.enter_world(ME, "test")
    named = groups.new_group(ME, [0, 1, 2], name="meeting")
    apart = groups.open_apart(ME, 2 - rank, 3, init_method="tcp://localhost:6173", name="meeting", timeout=20.0)
    assert (apart.rank, apart.size, apart.timeout) == (2 - rank, 3, 20.0)
    total = bytearray(3)
    calls.all_gather(ME, apart, total, bytearray([rank])).wait()
    assert total == bytes([2, 1, 0])
    groups.close_group(apart)
    with pytest.raises(StateError):
        calls.barrier(ME, apart)
    assert groups.find_group("meeting") is named
    calls.barrier(ME, named).wait()
    calls.barrier(ME, world).wait()


@pytest.mark.ranks(1)
def test_wrong_places() -> None:
    for rank, size, url in ((2, 2, "tcp://localhost:6173"), (0, 2, "tcp://localhost")):
        with pytest.raises(ArgumentError, match=r"^test: "):
            groups.open_apart(ME, rank, size, init_method=url, name="meeting")
    assert not groups.is_initialized()


UNCLOSED = """
from shim.core import calls, groups
from shim.core.callers import Caller
apart = groups.open_apart(Caller("test"), 0, 1, init_method="tcp://localhost:6175")
work = calls.all_gather(Caller("test"), apart, bytearray(3), bytearray(3)).start()
work.wait()
"""


@pytest.mark.parametrize("ending", ["", "del apart, work", "groups.close_group(apart)"])
def test_the_end_of_the_process_closes_it(ending: str) -> None:
    done = subprocess.run([sys.executable, "-c", UNCLOSED + ending], stderr=subprocess.PIPE, text=True, check=True)
    assert done.stderr == ""
