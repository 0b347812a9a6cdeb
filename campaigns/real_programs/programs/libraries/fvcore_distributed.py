"""fvcore: differentiable collectives, and detectron2's NaiveSyncBatchNorm on them, as detectron2.layers has it."""

from results import RANK, WORLD_SIZE, show

import torch
import torch.distributed as dist
from fvcore.nn.distributed import differentiable_all_gather, differentiable_all_reduce

dist.init_process_group("gloo")


class NaiveSyncBatchNorm(torch.nn.BatchNorm2d):
    """Batch norm with the mean and the mean square of all ranks."""

    def forward(self, inputs):
        mean, square = inputs.mean(dim=[0, 2, 3]), (inputs * inputs).mean(dim=[0, 2, 3])
        mean, square = (differentiable_all_reduce(torch.cat([mean, square])) / WORLD_SIZE).chunk(2)
        scale = self.weight * torch.rsqrt(square - mean * mean + self.eps)
        return inputs * scale.reshape(1, -1, 1, 1) + (self.bias - mean * scale).reshape(1, -1, 1, 1)


model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), NaiveSyncBatchNorm(4), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 3))
inputs = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(RANK), requires_grad=True)
model(inputs).square().mean().backward()
show("gradients", [inputs.grad, *(parameter.grad for parameter in model.parameters())])
rows = torch.arange(6.0).reshape(2, 3).add(RANK).requires_grad_()
gathered = torch.cat(differentiable_all_gather(rows))
(gathered * torch.arange(12.0).reshape(4, 3) * (RANK + 1)).sum().backward()
show("gathered", [gathered, rows.grad])
dist.destroy_process_group()
