"""The program that ``test_losses_across`` starts on hosts: ``losses_across.py WHAT FOLDER``, which writes what each rank saw to FOLDER."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import shim
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.errors import CollectiveTimeoutError, PeerLostError, ShimError

ME = Caller("test")
FOLDER = Path(sys.argv[2])
_MEETING = 8.0  # seconds
_PATIENCE = 30.0
_LATE = 3.0


def write(rank: int, **seen: Any) -> None:
    """Write a file at once: what is there is whole."""
    path = FOLDER / f"rank{rank}.json"
    path.with_suffix(".new").write_text(json.dumps(seen))
    path.with_suffix(".new").rename(path)


def loop(count: int, pause: float, going_on: bool) -> None:
    """Sum up *count* elements again and again until a rank is lost, and go on with the others where that is asked for."""
    world = groups.enter_world(ME, "test", timeout=_PATIENCE)
    tensor = np.ones(count)
    for step in range(1_000_000):
        if step == 20:
            (FOLDER / f"not-ready{world.rank}").write_text(str(os.getpid()))
            (FOLDER / f"not-ready{world.rank}").rename(FOLDER / f"ready{world.rank}")  # whole
        try:
            calls.all_reduce(ME, world, tensor, tensor, ReduceOp.MAX, now=step % 2 == 0).wait()
        except ShimError as error:
            seen = told(error)
            if going_on:
                seen["with the lost"] = with_the_lost(seen["ranks"][0])
                seen["later"] = rest()
            write(world.rank, **seen)
            return
        time.sleep(pause)


def told(error: ShimError) -> dict[str, Any]:
    ranks = error.ranks if isinstance(error, (PeerLostError, CollectiveTimeoutError)) else ()
    return {"at": time.time(), "error": type(error).__name__, "message": str(error), "ranks": ranks}


def with_the_lost(lost: int) -> str:
    """Return the error of a group of the ranks of a host, with the *lost* one; nothing on the other host."""
    here = groups.world(ME).rank // 2
    if lost // 2 != here:
        return ""
    begun = time.monotonic()
    try:
        groups.new_group(ME, [2 * here, 2 * here + 1], name="with the lost", timeout=10.0)
    except ShimError as error:
        return type(error).__name__ if time.monotonic() - begun < 2.0 else "late"
    return "none"


def rest() -> list[float]:
    """Return what the survivors' ranks sum up to in a group of their own."""
    group = groups.new_group(ME, shim.survivors(), name="rest", timeout=10.0)
    tensor = np.full(3, float(groups.world(ME).rank))
    calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM).wait()
    return [group.size, *tensor.tolist()]


def meet() -> None:
    """Meet and sum up the ranks; write that, or the error."""
    rank, start = int(os.environ["RANK"]), time.time()
    try:
        world = groups.enter_world(ME, "test", timeout=_MEETING)
    except ShimError as error:
        write(rank, **told(error), after=time.time() - start)
        return
    tensor = np.full(1, float(rank))
    calls.all_reduce(ME, world, tensor, tensor, ReduceOp.SUM).wait()
    write(rank, sum=tensor[0])
    groups.close_world()


def stay_away() -> None:
    """Meet, but for the last rank."""
    if int(os.environ["RANK"]) == int(os.environ["WORLD_SIZE"]) - 1:
        signal.sigtimedwait([signal.SIGUSR1], 2 * _MEETING)
    else:
        meet()


def come_late() -> None:
    """The last two ranks come late to an all_reduce: one sleeps, the other one waits for a message of it."""
    world = groups.enter_world(ME, "test", timeout=_PATIENCE)
    tensor = np.ones(3)
    calls.barrier(ME, world, now=True)
    if world.rank == world.size - 1:
        load_a_batch(world, tensor)
    elif world.rank == world.size - 2:
        calls.receive(ME, world, tensor, world.size - 1, 3).wait()  # the message
    calls.all_reduce(ME, world, tensor, tensor, ReduceOp.SUM).wait()  # the sum
    groups.close_world()


def load_a_batch(world: ProcessGroup, tensor: npt.NDArray[np.float64]) -> None:
    time.sleep(_LATE)  # the batch
    calls.send(ME, world, tensor, world.size - 2, 3).wait()


if __name__ == "__main__":
    {
        "loop": lambda: loop(3, 0.0, True),
        "loop over large tensors": lambda: loop(500_000, 0.0, False),
        "loop with pauses": lambda: loop(3, 0.2, False),
        "meet": meet,
        "stay away": stay_away,
        "come late": come_late,
    }[sys.argv[1]]()
