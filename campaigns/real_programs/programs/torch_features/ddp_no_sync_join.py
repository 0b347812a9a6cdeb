"""DistributedDataParallel with accumulated gradients (no_sync), static graph, unused parameters, and uneven inputs (Join)."""

from results import RANK, show

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")


def network():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(10, 30), torch.nn.GELU(), torch.nn.Linear(30, 4))


def batch(step):
    return torch.randn(6, 10, generator=torch.Generator().manual_seed(1000 * RANK + step))


class Branches(torch.nn.Module):
    """A network one of whose branches is not used in each step."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.branches = torch.nn.ModuleList(torch.nn.Linear(10, 4) for _ in range(3))

    def forward(self, inputs, chosen):
        return self.branches[chosen](inputs)


model = DistributedDataParallel(network())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for step in range(4):
    with model.no_sync():
        model(batch(2 * step)).square().mean().backward()
    model(batch(2 * step + 1)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
show("no_sync", model.module)

model = DistributedDataParallel(Branches(), find_unused_parameters=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step), (step + RANK) % 3).square().mean().backward()
    optimizer.step()
show("unused parameters", model.module)

model = DistributedDataParallel(network(), static_graph=True, gradient_as_bucket_view=True)
for step in range(3):
    model.zero_grad()
    model(batch(step)).square().mean().backward()
show("static graph", [parameter.grad for parameter in model.parameters()])

model = DistributedDataParallel(network())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
with model.join():
    for step in range(3 + 2 * RANK):
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        optimizer.step()
show("join", model.module)

model = DistributedDataParallel(network())
with Join([model], throw_on_early_termination=False):
    for step in range(4 - RANK):
        model.zero_grad()
        model(batch(step)).square().mean().backward()
show("Join", [parameter.grad for parameter in model.parameters()])
dist.destroy_process_group()
