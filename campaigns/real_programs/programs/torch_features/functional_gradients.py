"""Collectives with gradients, torch.distributed.nn.functional: a batch norm over all ranks, and each collective by itself."""

from results import RANK, WORLD_SIZE, show

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as collectives

dist.init_process_group("gloo")
torch.manual_seed(20 + RANK)


def normalise(inputs):
    """Normalise over the batches of all ranks, as SyncBatchNorm does on GPUs."""
    count = inputs.shape[0] * WORLD_SIZE
    mean = collectives.all_reduce(inputs.sum(0)) / count
    variance = collectives.all_reduce((inputs - mean).square().sum(0)) / count
    return (inputs - mean) / (variance + 1e-5).sqrt()


inputs = torch.randn(12, 5, requires_grad=True)
(normalise(inputs) * torch.arange(60.0).reshape(12, 5)).sum().backward()
show("normalised", normalise(inputs))
show("its gradient", inputs.grad)

rows = torch.randn(3, 4, requires_grad=True)
parts = collectives.all_gather(rows)
sum((part * (place + 1 + RANK)).sum() for place, part in enumerate(parts)).backward()
show("gradient of all_gather", rows.grad)

rows = torch.randn(4, 3, requires_grad=True)
(collectives.reduce_scatter(torch.empty(2, 3), list(rows.chunk(2))) * (RANK + 2)).sum().backward()
show("gradient of reduce_scatter", rows.grad)

rows = torch.randn(4, 3, requires_grad=True)
(collectives.all_to_all_single(torch.empty(4, 3), rows) * torch.arange(12.0).reshape(4, 3)).sum().backward()
show("gradient of all_to_all_single", rows.grad)

rows = torch.randn(4, requires_grad=True)
(collectives.broadcast(rows, 1) * (RANK + 1)).sum().backward()
show("gradient of broadcast", rows.grad)
dist.destroy_process_group()
