"""Small programs whose port used to be wrong without an entry. ``run`` returns what a program has computed.

A comment such as ``# paddle: function-as-value`` ends a line that gets an entry of this rule on the way to Paddle; ``all`` stands for every target.
"""

from __future__ import annotations

PADDLE = ("paddle_2", "paddle_3")

# Of each: the APIs in which it is written, and its text.
PROGRAMS = {
    "asks before init": (
        PADDLE,
        """
import paddle.distributed as dist

def run():
    seen = []
    if dist.get_world_size() > 1 and dist.ParallelEnv().nranks > 1:
        dist.init_parallel_env()
    seen += [dist.get_rank(), dist.get_world_size(), dist.is_initialized()]
    dist.destroy_process_group()
    return seen
""",
    ),
    "asks before init, in MindSpore": (
        ("mindspore",),
        """
from mindspore.communication import get_group_size, get_rank, init, release

def run():
    seen = [get_rank(), get_group_size()]
    init()
    seen.append(get_rank())
    release()
    return seen
""",
    ),
    "asks before init, in a text": (
        PADDLE,
        """
import paddle.distributed as dist

def run():
    seen = [f"rank {dist.get_rank()} of {dist.get_world_size()}"]
    dist.init_parallel_env()
    dist.destroy_process_group()
    return seen
""",
    ),
    "a helper asks, whatever happened before": (
        PADDLE,
        """
import paddle.distributed as dist

def is_first():
    return dist.get_rank() == 0  # torch: before-init

def run():
    seen = [is_first()]
    dist.init_parallel_env()
    dist.destroy_process_group()
    return seen
""",
    ),
    "takes a failure for rank 0": (
        ("torch",),
        """
import torch.distributed as dist

def rank():
    try:
        return dist.get_rank()  # all: before-init
    except (RuntimeError, ValueError):
        return 0

def run():
    return [rank()]
""",
    ),
    "fills empty lists": (
        PADDLE,
        """
import paddle
import paddle.distributed as dist

def run():
    dist.init_parallel_env()
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = paddle.to_tensor([1.0, 2.0]) + rank
    ins, outs = [mine + 10 * other for other in range(size)], []
    {alltoall}
    parts, objects, gathered = [], [], []
    dist.gather(mine, parts, dst=size - 1)
    dist.scatter_object_list(objects, [("for", other) for other in range(size)], 0)
    dist.all_gather(gathered, mine)
    others = []
    dist.stream.alltoall(others, ins)
    chosen = [] if rank == 0 else None
    dist.gather(mine, chosen, dst=0)
    seen = [objects, *outs, *parts, *gathered, *others, *(chosen or [])]
    dist.destroy_process_group()
    return seen
""",
    ),
    "a list may be empty": (
        PADDLE,
        """
import paddle
import paddle.distributed as dist

def exchange(ins, outs):
    {alltoall}  # torch mindspore: list-may-be-empty
    return outs

def run():
    dist.init_parallel_env()
    mine = paddle.to_tensor([1.0]) + dist.get_rank()
    seen = exchange([mine] * dist.get_world_size(), [])
    dist.destroy_process_group()
    return seen
""",
    ),
    "names come by a star": (
        ("torch",),
        """
from helper_names import *

def run():
    torch.distributed.init_process_group()
    mine = torch.ones(2) * (torch.distributed.get_rank() + 1)
    torch.distributed.all_reduce(mine, op=torch.distributed.ReduceOp.MAX)
    torch.distributed.destroy_process_group()
    return [mine]
""",
    ),
    "names the world in a default": (
        ("torch",),
        """
import torch
import torch.distributed as dist

def summed(tensor, group=dist.group.WORLD):
    dist.all_reduce(tensor, group=group)
    return tensor

class Sum:
    def __init__(self, *, group=dist.GroupMember.WORLD):
        self.group = group

    def __call__(self, tensor):
        return summed(tensor, self.group)

def run():
    dist.init_process_group()
    seen = [summed(torch.ones(2)), Sum()(torch.ones(3))]
    dist.destroy_process_group()
    return seen
""",
    ),
    "sets two names where an import fails": (
        ("torch",),
        """
import torch
try:
    import torch.distributed as dist
    HAVE = True
except ImportError:
    dist, HAVE = None, False

def run():
    dist.init_process_group()
    mine = torch.ones(2)
    work = dist.all_reduce(mine, async_op=True)
    work.wait()
    dist.destroy_process_group()
    return [HAVE, mine]
""",
    ),
    "passes arguments in dict()": (
        ("torch",),
        """
import torch
import torch.distributed as dist

def run():
    dist.init_process_group()
    mine, other = torch.ones(2) * dist.get_rank(), torch.ones(3)
    dist.all_reduce(mine, **dict(op=dist.ReduceOp.MAX, async_op=False))
    dist.all_reduce(other, **dict(async_op=True)).wait()
    dist.destroy_process_group()
    return [mine, other]
""",
    ),
    "gives arguments to a partial": (
        ("torch",),
        """
from functools import partial
import torch
import torch.distributed as dist

def run():
    dist.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    mine, found = torch.arange(2 * size) + 10 * rank, torch.zeros(2 * size, dtype=torch.int64)
    partial(dist.all_to_all_single, async_op=False)(found, mine)  # paddle_2: function-as-value
    chosen = torch.ones(2) * rank
    partial(dist.broadcast, chosen, src=size - 1)()
    partial(dist.all_reduce, op=dist.ReduceOp.MAX)(mine)
    dist.destroy_process_group()
    return [mine, found, chosen]
""",
    ),
    "annotates a handle": (
        ("torch",),
        """
from typing import Optional
import torch
import torch.distributed as dist
from torch.distributed import Work

def start(tensor, before: Optional[dist.Work] = None) -> "dist.Work":
    work: Work = dist.all_reduce(tensor, async_op=True)
    return work

def run():
    dist.init_process_group()
    mine = torch.ones(2)
    start(mine).wait()
    dist.destroy_process_group()
    return [mine]
""",
    ),
    "makes the same primitive often": (
        ("mindspore",),
        """
import mindspore
import mindspore.ops as ops
from mindspore.communication import init, release

class Net:
    def __init__(self):
        self.first, self.group = ops.AllReduce(), None  # all: no-gradient
        self.second = ops.AllReduce()
        self.third = ops.AllReduce("max")

def run():
    init()
    net = Net()
    mine = mindspore.Tensor([1.0, 2.0])
    seen = [net.second(mine), net.third(mine), ops.AllReduce()(mine)]
    release()
    return seen
""",
    ),
    "looks at what a call returns": (
        ("torch", "mindspore"),
        """
{imports}

def started(tensor, overlap):
    work = dist.all_reduce(tensor, async_op=overlap)
    if work is not None:
        work.wait()
    return work is None  # paddle: result-used

def run():
    dist.init_process_group()
    seen = [started({ones}, False), started({ones}, True)]
    dist.destroy_process_group()
    return seen
""",
    ),
    "waits for what a call returns": (
        PADDLE,
        """
import paddle
import paddle.distributed as dist

def summed(tensor, at_once):
    task = dist.all_reduce(tensor, sync_op=at_once)
    task.wait()  # torch mindspore: result-used
    return tensor

def run():
    dist.init_parallel_env()
    seen = [summed(paddle.ones([2]), True), summed(paddle.ones([2]), False)]
    dist.destroy_process_group()
    return seen
""",
    ),
    "asks for the size of a group of others": (
        ("torch", "mindspore"),
        """
{imports}

def run():
    dist.init_process_group()
    group = dist.new_group([0])
    seen = [dist.get_world_size(group=group), dist.get_rank(group=group)]
    dist.destroy_process_group()
    return seen
""",
    ),
    "asks for the size of a group of others by another function": (
        ("mindspore",),
        """
from mindspore.communication import get_group_size
import mindspore.mint.distributed as dist

def run():
    dist.init_process_group()
    group = dist.new_group([0])
    seen = [get_group_size(group)]  # torch paddle: group-of-others
    dist.destroy_process_group()
    return seen
""",
    ),
    "asks a group of others for its size": (
        PADDLE,
        """
import paddle.distributed as dist

def run():
    dist.init_parallel_env()
    group = dist.new_group([0])
    seen = [group.nranks]  # torch mindspore: group-of-others
    dist.destroy_process_group()
    return seen
""",
    ),
}
