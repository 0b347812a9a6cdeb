"""Post-local SGD: its hook and optimizer with a PeriodicModelAverager, and a hierarchical averager."""

from results import RANK, show

import torch
import torch.distributed as dist
import torch.distributed.algorithms.model_averaging.averagers as averagers
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
own, _ = dist.new_subgroups(group_size=1)
torch.manual_seed(31)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.Tanh(), torch.nn.Linear(24, 2)))
model.register_comm_hook(PostLocalSGDState(None, own, start_localSGD_iter=4), post_localSGD_hook)
optimizer = PostLocalSGDOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.05), averagers.PeriodicModelAverager(period=3, warmup_steps=4)
)
for step in range(11):
    inputs = torch.randn(8, 12, generator=torch.Generator().manual_seed(110 * RANK + step))
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()
    show(f"step {step}", next(model.parameters()).sum())
show("parameters", model.module)
dist.destroy_process_group()
