"""pytorch-metric-learning: DistributedLossWrapper and DistributedMinerWrapper over embeddings of all ranks, with gradients through DDP."""

from results import RANK, show

import torch
import torch.distributed as dist
from pytorch_metric_learning import losses, miners
from pytorch_metric_learning.utils.distributed import DistributedLossWrapper, DistributedMinerWrapper
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(20, 8))
miner = DistributedMinerWrapper(miners.MultiSimilarityMiner())
loss_of = DistributedLossWrapper(losses.ContrastiveLoss(), efficient=False)
efficient = DistributedLossWrapper(losses.TripletMarginLoss(), efficient=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    generator = torch.Generator().manual_seed(200 * RANK + step)
    inputs, labels = torch.randn(12, 20, generator=generator), torch.randint(0, 4, (12,), generator=generator)
    embeddings = model(inputs)
    pairs = miner(embeddings, labels)
    loss = loss_of(embeddings, labels, pairs) + efficient(embeddings, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show(f"loss {step}", loss)
show("parameters", model.module)
dist.destroy_process_group()
