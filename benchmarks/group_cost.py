"""What groups cost: the time to make one, and the shared memory and the descriptors of many that are there at once.

shim run -n 8 benchmarks/group_cost.py

Each of these groups has all ranks of the run. Used once means one all_reduce.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time

import numpy as np

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp

ME = Caller("group_cost")


def use(group: ProcessGroup, count: int) -> None:
    tensor = np.ones(count)
    calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM).wait()
    if not (tensor == group.size).all():
        raise AssertionError(f"a wrong sum in {group.name}")


def make(world: ProcessGroup, count: int) -> ProcessGroup:
    group = groups.new_group(ME, list(range(world.size)))
    if not isinstance(group, ProcessGroup):
        raise AssertionError("this rank is not in the group")
    use(group, count)
    return group


def shared_memory_of_machine() -> int:
    """Return its bytes of shared memory, those of other programs among them."""
    with open("/proc/meminfo") as facts:
        return next(int(line.split()[1]) * 1024 for line in facts if line.startswith("Shmem:"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--made", type=int, default=1000, help="groups that are made, used once and destroyed, one by one"
    )
    parser.add_argument("--alive", type=int, default=200, help="groups that are made, used once and kept")
    parser.add_argument("--bytes", type=int, default=8, help="of the tensor")
    parser.add_argument("--descriptors", type=int, default=1024, help="that a rank may have, as with ulimit -n")
    options = parser.parse_args()
    count = max(1, options.bytes // 8)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (options.descriptors, hard))
    world = groups.enter_world(ME, "group_cost", timeout=120)
    use(world, count)

    times = []
    for _ in range(options.made):
        began = time.perf_counter()
        group = make(world, count)
        times.append(time.perf_counter() - began)
        groups.close_group(group)
    if world.rank == 0 and times:
        median, least = statistics.median(times) * 1e3, min(times) * 1e3
        print(
            f"{options.made} groups of {world.size}: made and used once in {median:.2f} ms each, at best {least:.2f} ms"
        )

    calls.barrier(ME, world).wait()
    before = shared_memory_of_machine()
    calls.barrier(ME, world).wait()
    kept = [make(world, count) for _ in range(options.alive)]
    calls.barrier(ME, world).wait()
    grown = shared_memory_of_machine() - before
    descriptors = len(os.listdir("/proc/self/fd")) - 1
    print(
        f"{len(kept)} groups of {world.size} at once: rank {world.rank} has {descriptors} descriptors"
        + (f", the machine {grown / 2**20:.1f} MB more shared memory" if world.rank == 0 else "")
    )
    calls.barrier(ME, world).wait()
    groups.close_world()


if __name__ == "__main__":
    main()
