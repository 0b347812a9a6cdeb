"""DistributedDataParallel's communication hooks: fp16 compression, PowerSGD, and one around the other."""

from results import RANK, show

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")


def train(name, register):
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8))
    model = DistributedDataParallel(model)
    register(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(8):
        generator = torch.Generator().manual_seed(100 * step + RANK)
        inputs = torch.randn(16, 32, generator=generator)
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
    show(name, list(model.parameters()))


powersgd = powerSGD_hook.PowerSGDState(
    None, matrix_approximation_rank=2, start_powerSGD_iter=3, use_error_feedback=True
)
train("allreduce", lambda model: model.register_comm_hook(None, default_hooks.allreduce_hook))
train("fp16", lambda model: model.register_comm_hook(None, default_hooks.fp16_compress_hook))

train("PowerSGD", lambda model: model.register_comm_hook(powersgd, powerSGD_hook.powerSGD_hook))
train(
    "fp16 around PowerSGD",
    lambda model: model.register_comm_hook(
        powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2),
        default_hooks.fp16_compress_wrapper(powerSGD_hook.powerSGD_hook),
    ),
)
dist.destroy_process_group()
