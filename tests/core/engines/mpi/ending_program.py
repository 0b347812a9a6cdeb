"""End a process while a message is under way that never comes, ``python ending_program.py``; with ``killed``, as rank 1 is killed."""

from __future__ import annotations

import os
import signal
import sys

import link_cases

world = link_cases.opened()
pending = world.receive(memoryview(bytearray(4)), 1 - world.rank, 1)
link_cases.WORLD.Barrier()
if sys.argv[1:] == ["killed"] and world.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
assert not pending.wait(0.2)
world.close(False)
sys.stdout.write(f"rank {world.rank} ends\n")
