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

# The same calls as each framework's programs make them, with the names of the torch frontend taken away.
_TENSORS = """
mine = np.arange(6, dtype=np.float32) + 10 * rank
parts, whole = [np.zeros(6, np.float32) for _ in range(size)], np.zeros((size, 6), np.float32)
sent, exchanged = np.arange(size, dtype=np.int64) + 100 * rank, np.zeros(size, np.int64)
"""
IN_FRAMEWORKS = {
    "torch": _TENSORS
    + """
dist.all_reduce(mine, op=dist.ReduceOp.MAX)
work = dist.broadcast(mine, 1, async_op=True)
work.wait()
dist.all_gather(parts, mine)
dist.all_gather_single(whole, mine)
dist.all_to_all_single(exchanged, sent)
dist.barrier()
""",
    "paddle_2": "import shim.frontends.paddle_2.distributed as dist\ndist.init_parallel_env()"
    + _TENSORS
    + """
dist.all_reduce(mine, op=dist.ReduceOp.MAX)
dist.broadcast(mine, 1)
gathered = []
dist.all_gather(gathered, mine)
dist.stream.all_gather(whole, mine, sync_op=True)
dist.alltoall_single(sent, exchanged)
dist.barrier()
""",
    "paddle_3": "import shim.frontends.paddle_3.distributed as dist\ndist.init_parallel_env()"
    + _TENSORS
    + """
dist.all_reduce(mine, op=dist.ReduceOp.MAX)
dist.broadcast(mine, 1)
gathered = []
dist.all_gather(gathered, mine)
dist.stream.all_gather(whole, mine, sync_op=True)
dist.alltoall_single(exchanged, sent)
dist.barrier()
""",
    "mindspore": "import shim.frontends.mindspore.mint.distributed as dist\ndist.init_process_group()"
    + _TENSORS
    + """
dist.all_reduce(mine, op="max")
dist.broadcast(mine, 1)
dist.all_gather(parts, mine)
dist.all_gather_into_tensor(whole, mine)
dist.all_to_all_single(exchanged, sent)
dist.barrier()
""",
}

# Its ranks leave the world and make it anew, under the same name.
AGAIN = """
dist.barrier()
dist.destroy_process_group()
dist.init_process_group()
dist.barrier()
"""
