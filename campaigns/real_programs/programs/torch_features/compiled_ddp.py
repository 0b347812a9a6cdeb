"""torch.compile over DistributedDataParallel with the optimiser that splits graphs by buckets, and over replicate()."""

from results import RANK, show

import torch
import torch.distributed as dist
from torch.distributed._composable.replicate import replicate
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")


def train(name, wrap):
    torch.manual_seed(3)
    layers = [torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU()) for _ in range(4)]  # 1 MB each
    plain = torch.nn.Sequential(*layers)
    model = torch.compile(wrap(plain), backend="aot_eager")
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    for step in range(4):
        inputs = torch.randn(4, 512, generator=torch.Generator().manual_seed(step + 60 * RANK))
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        show(f"{name}: loss {step}", loss)
    show(f"{name}: parameters", list(plain.parameters()))


train("DDP", lambda plain: DistributedDataParallel(plain, bucket_cap_mb=2))
train("replicate", replicate)
dist.destroy_process_group()
