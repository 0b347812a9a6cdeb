"""Two processes that both were told to be rank 0 learn it soon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import multiprocessing, sys, time
from shim.core import groups
from shim.core.callers import Caller
from shim.errors import StateError

rank, place, children, timeout = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
loaders = [multiprocessing.get_context("fork").Process(target=time.sleep, args=(100,)) for _ in range(children)]
for loader in loaders:
    loader.start()
begin = time.monotonic()
try:
    groups.enter_world(Caller("test"), "test", rank=rank, world_size=3, init_method=place, timeout=timeout)
except StateError as error:
    print(time.monotonic() - begin < 20, "two processes are rank 0" in str(error), sep="; ", end="; ")
    print(*sorted(int(word) for word in str(error).replace(",", "").split() if word.isdigit() and int(word) > 1))
finally:
    for loader in loaders:
        loader.kill()
"""


@pytest.mark.parametrize(("children", "timeout"), [((0, 0), 60), ((2, 0), 4), ((2, 2), 4)], ids=str)
def test_both_are_told(children: tuple[int, int], timeout: float, tmp_path: Path) -> None:
    """Children that load data do not make of a rank 0 one that has started the other ranks, and leaves the address to others."""
    command = [sys.executable, "-c", PROGRAM, "0", f"file://{tmp_path}/meeting"]
    processes = [
        subprocess.Popen([*command, str(count), str(timeout)], stdout=subprocess.PIPE, text=True) for count in children
    ]
    said = [process.communicate(timeout=300)[0].strip() for process in processes]
    parent, mine = os.getpid(), [process.pid for process in processes]
    assert said == [f"True; True; {' '.join(map(str, sorted([*mine, parent, parent])))}"] * 2
