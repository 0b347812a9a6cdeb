"""torch.distributed.pipelining: a model in two stages under GPipe, 1F1B, interleaved 1F1B and zero-bubble schedules."""

from results import RANK, WORLD_SIZE, show

import torch
import torch.distributed as dist
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
)

dist.init_process_group("gloo")
cpu = torch.device("cpu")
inputs = torch.randn(16, 12, generator=torch.Generator().manual_seed(1))
target = torch.randn(16, 12, generator=torch.Generator().manual_seed(2))


def part(number):
    torch.manual_seed(40 + number)
    return torch.nn.Sequential(torch.nn.Linear(12, 12), torch.nn.Tanh(), torch.nn.Linear(12, 12))


def run(schedule_class, stages_per_rank):
    count = WORLD_SIZE * stages_per_rank
    numbers = range(RANK, count, WORLD_SIZE)
    parts = [part(number) for number in numbers]
    stages = [PipelineStage(one, number, count, cpu) for one, number in zip(parts, numbers, strict=True)]
    schedule = schedule_class(stages if stages_per_rank > 1 else stages[0], 4, loss_fn=torch.nn.functional.mse_loss)
    losses = []
    given = (inputs,) if RANK == 0 else ()
    more = {"target": target, "losses": losses} if RANK == WORLD_SIZE - 1 else {}
    output = schedule.step(*given, **more)
    name = schedule_class.__name__
    show(f"{name}: gradients", [parameter.grad for one in parts for parameter in one.parameters()])
    show(f"{name}: output and losses", [output if RANK == WORLD_SIZE - 1 else None, losses])


run(ScheduleGPipe, 1)
run(Schedule1F1B, 1)
run(ScheduleInterleaved1F1B, 2)
run(ScheduleInterleavedZeroBubble, 2)
dist.destroy_process_group()
