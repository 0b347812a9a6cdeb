"""More small programs, as ``awkward_programs`` has them: how names are held, how calls are made, and what is done with their results."""

from __future__ import annotations

PADDLE = ("paddle_2", "paddle_3")
TORCH = ("torch",)
MINDSPORE = ("mindspore",)

_TORCH = """
import torch
import torch.distributed as dist
{before}
def run():
    dist.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = torch.arange(4) + 10 * rank
    {body}
    dist.destroy_process_group()
    return seen
"""
_PADDLE = """
import paddle
import paddle.distributed as dist
{before}
def run():
    dist.init_parallel_env()
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = paddle.arange(4) + 10 * rank
    {body}
    dist.destroy_process_group()
    return seen
"""
_MINDSPORE = """
import mindspore
import mindspore.ops as ops
import mindspore.mint.distributed as dist
from mindspore.communication import comm_func, get_group_size, get_rank, init, release
{before}
def run():
    init()
    rank, size = get_rank(), get_group_size()
    mine = mindspore.Tensor([0, 1, 2, 3]) + 10 * rank
    {body}
    release()
    return seen
"""


def _written(frame: str, body: str, before: str = "") -> str:
    return frame.replace("{before}", before).replace("{body}", body.strip().replace("\n", "\n    "))


def of_torch(body: str, before: str = "") -> tuple[tuple[str, ...], str]:
    return TORCH, _written(_TORCH, body, before)


def of_paddle(body: str, before: str = "") -> tuple[tuple[str, ...], str]:
    return PADDLE, _written(_PADDLE, body, before)


def of_mindspore(body: str, before: str = "") -> tuple[tuple[str, ...], str]:
    return MINDSPORE, _written(_MINDSPORE, body, before)


PROGRAMS = {
    "holds ops in a dictionary": of_torch(
        """
seen = []
for name in ("sum", "max"):
    dist.all_reduce(mine, op=OPS[name])
    seen.append(mine.clone())
""",
        'OPS = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}\n',
    ),
    "holds functions in a dictionary": of_torch(
        """
{"all": dist.all_reduce, "one": dist.broadcast}["all"](mine)  # paddle: function-as-value
exchange = {"pairs": dist.all_to_all_single}  # paddle: function-as-value
found = torch.zeros_like(mine[:size])
exchange["pairs"](found, mine[:size].clone())
seen = [mine, found]
"""
    ),
    "asks for an op by its name": of_torch(
        """
seen = [reduced(mine.clone(), name) for name in ("SUM", "MAX")]
""",
        """
def reduced(tensor, name):
    dist.all_reduce(tensor, op=getattr(dist.ReduceOp, name))  # all: name-at-run-time
    return tensor
""",
    ),
    "asks for a function by its name": of_torch(
        """
function = getattr(dist, "all_reduce")
function(mine)
seen = [mine]
"""
    ),
    "passes keywords on": of_torch(
        """
reduced(mine, op=dist.ReduceOp.MAX, async_op=True).wait()
seen = [mine]
""",
        """
def reduced(tensor, **keywords):
    return dist.all_reduce(tensor, **keywords)  # all: unpacked-arguments
""",
    ),
    "passes arguments on": of_torch(
        """
seen = [sent(mine, size - 1)]
""",
        """
def sent(tensor, *where):
    dist.broadcast(tensor, *where)  # all: unpacked-arguments
    return tensor
""",
    ),
    "counts calls by a wrapper": of_torch(
        """
counted(dist.all_reduce)(mine)  # paddle: function-as-value
counted(dist.broadcast)(mine, 0)  # paddle: function-as-value
seen = [mine, COUNT]
""",
        """
COUNT = []

def counted(function):
    def wrapper(*arguments, **keywords):
        COUNT.append(1)
        return function(*arguments, **keywords)
    return wrapper
""",
    ),
    "asks whether it has a group": of_torch(
        """
seen = [ranks_of(dist.new_group()), ranks_of([0, 1])]
""",
        """
def ranks_of(value):
    return dist.get_process_group_ranks(value) if isinstance(value, dist.ProcessGroup) else list(value)
""",
    ),
    "waits for many": of_torch(
        """
others = [mine + other for other in range(3)]
works = [dist.all_reduce(each, async_op=True) for each in others]
[work.wait() for work in works]
if (work := dist.broadcast(mine, 0, async_op=True)) is not None:
    work.wait()
dist.barrier(async_op=True).wait()  # paddle: no-equivalent-argument
seen = [mine, *others]
"""
    ),
    "chooses between two calls": of_torch(
        """
if rank < 2:
    dist.send(mine, 1) if rank == 0 else dist.recv(mine, 0)
    (dist.send if rank == 1 else dist.recv)(mine, 1 - rank)  # paddle: function-as-value
seen = [mine]
"""
    ),
    "has other things of the module's name": of_torch(
        """
dist.all_reduce(mine)
seen = [mine, length(dist=2.0), [dist for dist in range(2)], (lambda dist: dist + 1)(1)]
""",
        """
def length(dist):
    return dist * 2
""",
    ),
    "imports everything": (
        TORCH,
        """
import torch
from torch.distributed import *  # all: star-import

def run():
    init_process_group()
    mine = torch.ones(2) * get_rank()
    all_reduce(mine, ReduceOp.MAX)
    destroy_process_group()
    return [mine]
""",
    ),
    "sends with tags": of_torch(
        """
first, second = torch.zeros(2), torch.zeros(2)
if rank == 0:
    dist.send(torch.ones(2), 1, tag=1)  # paddle: no-equivalent-argument
    dist.send(torch.ones(2) * 2, 1, tag=2)  # paddle: no-equivalent-argument
if rank == 1:
    dist.recv(second, 0, tag=1)  # paddle: no-equivalent-argument
    dist.recv(first, 0, tag=2)  # paddle: no-equivalent-argument
seen = [first, second]
"""
    ),
    "takes what comes": of_torch(
        """
if rank == 0:
    dist.send(mine, 1)
if rank == 1:
    dist.recv(mine)  # all: any-source
seen = [mine]
"""
    ),
    "names ranks of a group": of_torch(
        """
group = dist.new_group([0, size - 1])
if rank in (0, size - 1):
    dist.broadcast(mine, group=group, group_src=1)
    dist.reduce(mine, group_dst=1, group=group)
seen = [mine if rank == size - 1 else 0, dist.get_rank(group) if rank in (0, size - 1) else 0]
"""
    ),
    "keeps a group in a global": of_torch(
        """
dist.all_reduce(mine, group=everyone())
seen = [mine, everyone() is everyone()]
""",
        """
_GROUP = None

def everyone():
    global _GROUP
    if _GROUP is None:
        _GROUP = dist.new_group()
    return _GROUP
""",
    ),
    "keeps an op in a class": of_torch(
        """
seen = [Metric()(mine.clone()), Metric(dist.ReduceOp.MAX)(mine.clone())]
""",
        """
from dataclasses import dataclass

@dataclass
class Metric:
    op: dist.ReduceOp = dist.ReduceOp.SUM

    def __call__(self, tensor):
        dist.all_reduce(tensor, self.op)
        return tensor
""",
    ),
    "writes into views": of_torch(
        """
whole = torch.zeros(4 * size, dtype=mine.dtype)
dist.all_gather(list(whole.chunk(size)), mine)
dist.reduce_scatter(mine, [part.clone() for part in whole.split(4)])
seen = [whole, mine]
"""
    ),
    "reduces bits": of_torch(
        """
dist.all_reduce(mine, op=dist.ReduceOp.BOR)  # all: no-equivalent
seen = [mine]
"""
    ),
    "averages": of_torch(
        """
whole = mine.float()
dist.all_reduce(whole, op=dist.ReduceOp.AVG)  # paddle_2: no-equivalent
seen = [whole]
"""
    ),
    "matches a case": of_torch(
        """
seen = []
for kind in ("sum", "most", "other"):
    match kind:
        case "sum":
            dist.all_reduce(mine)
        case "most":
            dist.all_reduce(mine, dist.ReduceOp.MAX)
        case _:
            dist.barrier()
    seen.append(mine.clone())
"""
    ),
    "sends objects": of_torch(
        """
found = [None] * size
dist.all_gather_object(found, {"rank": rank})
told = ["from 0" if rank == 0 else None]
dist.broadcast_object_list(told, src=0)
own = [None]
dist.scatter_object_list(own, [("to", other) for other in range(size)] if rank == 0 else None, src=0)
seen = [*found, *told, *own]
"""
    ),
    "uses Paddle's groups": of_paddle(
        """
group = dist.new_group([0, 1])
pair = paddle.ones([2]) * rank
if rank < 2:
    dist.all_reduce(pair, group=group)
    dist.broadcast(pair, src=1, group=group)
seen = [pair, group.rank if rank < 2 else 0, dist.get_group(0).nranks]
"""
    ),
    "waits for tasks": of_paddle(
        """
tasks = [dist.all_reduce(mine, sync_op=False)]
tasks[0].wait()
other = mine * 2
task = dist.isend(other, (rank + 1) % size)
found = paddle.zeros_like(other)
dist.irecv(found, (rank - 1) % size).wait()
task.wait()
seen = [mine, found]
"""
    ),
    "scatters and splits": of_paddle(
        """
own = paddle.zeros([2], dtype="int64")
dist.scatter(own, [mine[:2] + other for other in range(size)] if rank == 0 else None, src=0)
parts = [paddle.zeros([2], dtype="int64") for _ in range(size)]
dist.all_gather(parts, own)
dist.reduce(own, dst=0, op=dist.ReduceOp.MAX)
seen = [own if rank == 0 else 0, *parts]
"""
    ),
    "uses streams": of_paddle(
        """
dist.stream.all_reduce(mine, op=dist.ReduceOp.MAX, sync_op=True)
whole = paddle.zeros([4 * size], dtype="int64")
dist.stream.all_gather(whole, mine, sync_op=True)
dist.stream.broadcast(mine, src=0, sync_op=False).wait()
seen = [mine, whole]
"""
    ),
    "names MindSpore's world": of_mindspore(
        """
summed = ops.AllReduce(ops.ReduceOp.SUM, GlobalComm.WORLD_COMM_GROUP)(mine)  # all: no-gradient
whole = ops.AllGather()(mine)  # all: no-gradient
least = ops.AllReduce("min")(mine)
sent = ops.Broadcast(0)((mine,))[0]  # all: no-gradient
seen = [summed, whole, least, sent]
""",
        "from mindspore.communication import GlobalComm\n",
    ),
    "creates a group by its name": of_mindspore(
        """
create_group("pair", [0, 1])  # all: no-equivalent
seen = []
if rank < 2:
    summed = ops.AllReduce(group="pair")(mine)  # all: group-by-name
    seen = [summed, get_rank("pair"), get_group_size("pair")]  # all: group-by-name
""",
        "from mindspore.communication import create_group  # all: no-equivalent\n",
    ),
    "calls functions that return": of_mindspore(
        """
summed, handle = comm_func.all_reduce(mine, "max")  # all: no-gradient
whole, _ = comm_func.all_gather_into_tensor(mine)  # all: no-gradient
seen = [summed, whole]
"""
    ),
    "keeps a cell's communication": of_mindspore(
        """
net = Net()
seen = [net(mine), net.construct(mine)]
""",
        """
class Net(mindspore.nn.Cell):
    def __init__(self):
        super().__init__()
        self.sum, self.parts = ops.AllReduce(), ops.ReduceScatter(ops.ReduceOp.MAX)  # all: no-gradient

    def construct(self, x):
        return self.sum(x), self.parts(ops.concat([x] * get_group_size()))
""",
    ),
    "mixes MindSpore's two ways": of_mindspore(
        """
dist.all_reduce(mine, op="max")
outputs = [ops.zeros_like(mine) for _ in range(size)]
dist.all_gather(outputs, mine, group=GlobalComm.WORLD_COMM_GROUP)
work = dist.broadcast(mine, 0, async_op=True)
work.wait()
seen = [mine, *outputs]
""",
        "from mindspore.communication import GlobalComm\n",
    ),
}
