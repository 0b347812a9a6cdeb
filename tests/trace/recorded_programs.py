"""Programs whose recordings the tests look at. Each follows ``SETTING``."""

from __future__ import annotations

SETTING = """
import os, sys, time
import numpy as np
import shim.frontends.torch.distributed as dist
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
"""

# All collectives, in two groups, with messages, objects and a call in the background.
EVERYTHING = """
pair = dist.new_group([0, 1])
def step():
    mine = np.full((2, 3), rank + 1, np.float32)
    dist.all_reduce(mine)
    dist.broadcast(mine, src=1)
    dist.reduce(mine, 0)
    dist.all_gather([np.zeros((2, 3), np.float32) for _ in range(size)], mine)
    dist.all_gather_single(np.zeros((2 * size, 3), np.float32), mine)
    dist.gather(mine, [np.zeros((2, 3), np.float32) for _ in range(size)] if rank == 1 else None, dst=1)
    dist.scatter(mine, [np.ones((2, 3), np.float32) for _ in range(size)] if rank == 0 else None, src=0)
    dist.reduce_scatter_single(np.zeros((2, 3), np.float32), np.ones((2 * size, 3), np.float32))
    dist.all_to_all_single(np.zeros((size, 2)), np.ones((size, 2)))
    dist.barrier()
    if rank < 2:
        work = dist.all_reduce(mine, op=dist.ReduceOp.MAX, group=pair, async_op=True)
        time.sleep(0.002)
        work.wait()
    if rank == 0:
        dist.send(np.ones(3), 1)
        dist.recv(np.ones(3), 1)
    elif rank == 1:
        dist.recv(np.ones(3))
        dist.isend(np.ones(3), 0).wait()
    dist.all_gather_object([None] * size, {"rank": rank})
for _ in range(2):
    step()
"""

MISMATCH = """
def step(count):
    dist.all_reduce(np.zeros(count))
step(4)
if rank == 5:
    step(5)
else:
    step(4)
"""

HANG = """
pids = np.zeros(size, np.int64)
dist.all_gather_single(pids, np.array([os.getpid()]))
if rank == 0:
    dist.all_reduce(np.zeros(3))
time.sleep(0.5)
for pid in pids:
    os.kill(pid, 9)
"""
