"""What ranks do in test_against_oracle.py beside the random calls; in a module of its own, because it runs in other processes."""

from __future__ import annotations

import numpy as np

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.errors import ArgumentError, ShimError

ME = Caller("test")


def count_up(times: int) -> None:
    """Sum and gather the step's number many times over, with nothing between the calls."""
    world = groups.enter_world(ME, "test", timeout=30.0)
    try:
        tensor, gathered = np.zeros(1), np.zeros(world.size)
        for step in range(times):
            tensor[0] = step + world.rank
            calls.all_gather(ME, world, gathered, tensor, now=step % 2 == 0).wait()
            assert gathered.tolist() == [step + rank for rank in range(world.size)]
            calls.all_reduce(ME, world, tensor, tensor, ReduceOp.MAX, now=step % 3 == 0).wait()
            assert tensor[0] == step + world.size - 1
    finally:
        groups.close_group(world)


def be_refused_and_go_elsewhere() -> list[object]:
    """Rank 0 is refused twice in one group and goes on in another, where it waits for rank 1, which waits in the first."""
    world = groups.enter_world(ME, "test", timeout=10.0)
    try:
        other = groups.new_group(ME)
        seen: list[object] = []
        for _ in range(2):
            try:
                _sum_up(world, np.ones(2 if world.rank == 0 else 1))
            except ArgumentError:
                seen.append("MismatchError")  # what the others get
            except ShimError as error:
                seen.append(type(error).__name__)
        tensor = np.full(1, float(world.rank + 1))
        _sum_up(other, tensor)
        return [*seen, float(tensor[0])]
    finally:
        groups.close_group(world)


def _sum_up(group: ProcessGroup, tensor: np.ndarray) -> None:
    calls.all_reduce(ME, group, tensor[:1], tensor, ReduceOp.SUM, now=True)
