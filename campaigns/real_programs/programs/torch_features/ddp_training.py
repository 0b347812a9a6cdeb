"""DistributedDataParallel: a network learns, each rank from its own part of the data, with a DistributedSampler."""

from results import RANK, WORLD_SIZE, show

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
generator = torch.Generator().manual_seed(1)
inputs = torch.randn(103, 20, generator=generator)
data = TensorDataset(inputs, inputs[:, :1] * 2 - inputs[:, 1:2])
sampler = DistributedSampler(data, num_replicas=WORLD_SIZE, rank=RANK, seed=3)
loader = DataLoader(data, batch_size=8, sampler=sampler)

model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 1))
model = DistributedDataParallel(model, bucket_cap_mb=0.002)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for batch, target in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(batch), target)
        loss.backward()
        optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    show(f"loss of epoch {epoch}", mean / WORLD_SIZE)
show("sampled", list(sampler)[:8])
show("parameters", model.module)
dist.destroy_process_group()
