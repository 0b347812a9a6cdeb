"""Programs of which one rank can be made to go wrong: by the variables MISTAKE and WHO. SIZE and STEPS are drawn too."""

from __future__ import annotations

from dataclasses import dataclass

_BEGIN = """
import os, sys
{imports}
SIZE, STEPS = int(os.environ["SIZE"]), int(os.environ["STEPS"])
dist.init_process_group({backend})
rank, world = dist.get_rank(), dist.get_world_size()
def wrong(kind):
    return os.environ.get("MISTAKE") == kind and rank == int(os.environ["WHO"])
"""
_OURS = _BEGIN.format(
    imports="import numpy as np\nimport shim.frontends.torch.distributed as dist\nzeros = np.zeros", backend=""
)
_TORCH = _BEGIN.format(imports="import torch\nimport torch.distributed as dist\nzeros = torch.zeros", backend='"gloo"')


@dataclass(frozen=True)
class Program:
    """A *text*, in which one rank may make one of the *mistakes*."""

    text: str
    mistakes: tuple[str, ...]
    options: tuple[str, ...] = ("--as-installed",)


COLLECTIVES = Program(
    _OURS
    + """
groups = [list(range(first, first + 2)) for first in range(0, world, 2)]
mine = [dist.new_group(ranks) for ranks in (groups[::-1] if wrong("groups in another order") else groups)]
mine = mine[(world - 2 - rank // 2 * 2) // 2 if wrong("groups in another order") else rank // 2]
for step in range(STEPS):
    is_last = step == STEPS - 1
    if is_last and wrong("leaves early"): sys.exit()
    if not (is_last and wrong("skipped broadcast")):
        dist.broadcast(zeros(SIZE), 1 if is_last and wrong("wrong root") else 0)
    dist.all_reduce(zeros(SIZE + (is_last and wrong("another shape"))), group=mine)
    dist.all_reduce(zeros(SIZE), op=dist.ReduceOp.MAX if is_last and wrong("another reduction") else dist.ReduceOp.SUM)
    part = zeros(SIZE)
    dist.reduce_scatter_single(part, zeros(SIZE * world))
    dist.all_gather_single(zeros(SIZE * world), part)
    splits = [1 + (rank + other) % 3 for other in range(world)]
    received = list(splits)
    if is_last and wrong("splits that disagree"): received[0] += 1
    dist.all_to_all_single(zeros(sum(received)), zeros(sum(splits)), received, splits)
    if is_last and wrong("one call more"): dist.barrier()
    if world < 100:  # a thousand objects of a thousand ranks take minutes
        every = [None] * world
        dist.all_gather_object(every, rank)
        assert every[-1] == world - 1
    if rank % 2 != wrong("both receive or send first"):
        dist.send(zeros(SIZE + 2000), rank ^ 1); dist.recv(zeros(SIZE + 2000), rank ^ 1)
    else:
        dist.recv(zeros(SIZE + 2000), rank ^ 1); dist.send(zeros(SIZE + 2000), rank ^ 1)
dist.barrier()
""",
    (
        "groups in another order",
        "leaves early",
        "skipped broadcast",
        "wrong root",
        "another shape",
        "another reduction",
        "splits that disagree",
        "one call more",
        "both receive or send first",
    ),
    (),
)
DDP = Program(
    _TORCH
    + """
width = SIZE + wrong("another layer")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(SIZE, width), torch.nn.Linear(width, 3)))
for step in range(STEPS):
    is_last = step == STEPS - 1
    if is_last and wrong("leaves early"): sys.exit()
    if is_last and wrong("no gradients averaged"):
        with model.no_sync(): model(torch.ones(2, SIZE)).sum().backward()
    else:
        model(torch.ones(2, SIZE)).sum().backward()
    if not (is_last and wrong("loss not reduced")): dist.all_reduce(torch.ones(30))
dist.barrier()
""",
    ("another layer", "leaves early", "no gradients averaged", "loss not reduced"),
)
FSDP2 = Program(
    _TORCH
    + """
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
layers = torch.nn.Sequential(*(torch.nn.Linear(SIZE * world, SIZE * world) for _ in range(3)))
for layer in layers:
    dtype = torch.float16 if wrong("another dtype") else torch.bfloat16
    fully_shard(layer, mp_policy=MixedPrecisionPolicy(dtype), reshard_after_forward=not wrong("kept parameters"))
fully_shard(layers)
for step in range(STEPS):
    is_last = step == STEPS - 1
    loss = layers(torch.ones(2, SIZE * world)).sum()
    if is_last and wrong("no backward"): continue
    loss.backward()
    if is_last and wrong("one call more"): dist.all_reduce(torch.ones(30))
dist.barrier()
""",
    ("another dtype", "kept parameters", "no backward", "one call more"),
)
DTENSOR = Program(
    _TORCH
    + """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("a", "b"))
for step in range(STEPS):
    is_last = step == STEPS - 1
    tensor = distribute_tensor(torch.ones(8 * world, SIZE * world), mesh, [Shard(0), Shard(1)])
    if is_last and wrong("another placement"): tensor.redistribute(placements=[Shard(0), Replicate()])
    else: tensor.redistribute(placements=[Replicate(), Shard(1)])
    if not (is_last and wrong("no sum")): (tensor * 2).sum().full_tensor()
dist.barrier()
""",
    ("another placement", "no sum"),
)
PIPELINE = Program(
    _TORCH
    + """
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
stage = PipelineStage(torch.nn.Linear(SIZE, SIZE), rank, world, torch.device("cpu"))
kind = ScheduleGPipe if wrong("another schedule") else Schedule1F1B
schedule = kind(stage, n_microbatches=world + wrong("another microbatch"), loss_fn=lambda out, target: out.sum())
count = world * (world + 1)
for step in range(STEPS):
    if step == STEPS - 1 and wrong("leaves early"): sys.exit()
    if rank == 0: schedule.step(torch.ones(count, SIZE))
    elif rank == world - 1: schedule.step(target=torch.ones(count, SIZE))
    else: schedule.step()
dist.barrier()
""",
    ("leaves early", "another microbatch"),
)
PROGRAMS = {"collectives": COLLECTIVES, "DDP": DDP, "FSDP2": FSDP2, "DTensor": DTENSOR, "pipeline": PIPELINE}
