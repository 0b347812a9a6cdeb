"""fairscale: OSS with ShardedDataParallel, and with DDP, clipping, consolidated state, and its AdaScale."""

from results import RANK, show

import torch
import torch.distributed as dist
from fairscale.nn.data_parallel import ShardedDataParallel
from fairscale.optim import AdaScale
from fairscale.optim.oss import OSS
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")


def train(name, wrapped, optimizer, steps=4):
    for step in range(steps):
        inputs = torch.randn(8, 10, generator=torch.Generator().manual_seed(30 * RANK + step))
        wrapped.zero_grad()
        wrapped(inputs).square().mean().backward()
        if hasattr(optimizer, "clip_grad_norm"):
            show(f"{name}: norm {step}", optimizer.clip_grad_norm(1.0))
        optimizer.step()
    show(f"{name}: parameters", list(wrapped.parameters()))


def network():
    torch.manual_seed(23)
    return torch.nn.Sequential(
        torch.nn.Linear(10, 30), torch.nn.Tanh(), torch.nn.Linear(30, 30), torch.nn.Linear(30, 2)
    )


model = network()
optimizer = OSS(model.parameters(), optim=torch.optim.SGD, lr=0.1, momentum=0.9)
train("sharded", ShardedDataParallel(model, optimizer), optimizer)
optimizer.consolidate_state_dict(0)
show("state", optimizer.state_dict()["state"] if RANK == 0 else None)

model = DistributedDataParallel(network())
optimizer = OSS(model.parameters(), optim=torch.optim.Adam, lr=0.01, broadcast_fp16=True)
train("DDP", model, optimizer)

model = DistributedDataParallel(network())
optimizer = AdaScale(torch.optim.SGD(model.parameters(), lr=0.1))
train("AdaScale", model, optimizer)
show("gain", optimizer.gain())
dist.destroy_process_group()
