"""A tensor-parallel MLP: the first layer is divided by columns, the second by rows, and autograd functions communicate between them."""

from dataclasses import dataclass
from typing import Dict, List, Optional

import torch
import torch.distributed as dist
from torch import nn
from torch.autograd import Function


@dataclass
class Parallel:
    """The groups of this rank: in one it shares its layers, in the other its data."""

    tensor: dist.ProcessGroup
    data: Optional[dist.ProcessGroup] = None

    @property
    def size(self) -> int:
        return self.tensor.size()

    @property
    def rank(self) -> int:
        return self.tensor.rank()


def make_group(partition: List[List[int]]) -> dist.ProcessGroup:
    """Make a group for each part of the ranks, and return this rank's."""
    mine = None
    for ranks in partition:
        group = dist.new_group(ranks)
        if dist.get_rank() in ranks:
            mine = group
    return mine


def parallel_of(width: int) -> Parallel:
    size = dist.get_world_size()
    ranks = list(range(size))
    rows = [ranks[first : first + width] for first in range(0, size, width)]
    columns = [ranks[first::width] for first in range(width)]
    groups: Dict[str, dist.ProcessGroup] = {}
    for name, partition in (("tensor", rows), ("data", columns)):
        groups[name] = make_group(partition)
    for name, group in groups.items():
        print(f"{name}: rank {group.rank()} of {group.size()}, {dist.get_process_group_ranks(group)}")
    return Parallel(groups["tensor"], data=groups["data"])


class CopyToRanks(Function):
    """The identity, whose gradient is the sum over the group."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


class SumOverRanks(Function):
    """The sum over the group, whose gradient is the identity."""

    @staticmethod
    def forward(ctx, x, group):
        if group.size() == 1:
            return x
        x = x.clone()
        dist.all_reduce(x, op=dist.ReduceOp.SUM, group=group)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class GatherColumns(Function):
    """The parts of all ranks, beside each other."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        parts = [torch.empty_like(x) for _ in range(ctx.group.size())]
        dist.all_gather(parts, x.contiguous(), group=group)
        return torch.cat(parts, dim=-1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.chunk(ctx.group.size(), dim=-1)[ctx.group.rank()].contiguous(), None


class ColumnParallelLinear(nn.Module):
    def __init__(self, inputs: int, outputs: int, parallel: Parallel, gathers: bool = False):
        super().__init__()
        self.parallel = parallel
        self.gathers = gathers
        whole = torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(1))
        self.weight = nn.Parameter(whole.chunk(parallel.size)[parallel.rank].clone())

    def forward(self, x):
        y = CopyToRanks.apply(x, self.parallel.tensor) @ self.weight.t()
        return GatherColumns.apply(y, self.parallel.tensor) if self.gathers else y


class RowParallelLinear(nn.Module):
    def __init__(self, inputs: int, outputs: int, parallel: Parallel):
        super().__init__()
        self.group = parallel.tensor
        whole = torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(2))
        self.weight = nn.Parameter(whole.chunk(self.group.size(), dim=1)[self.group.rank()].clone())

    def forward(self, x):
        return SumOverRanks.apply(x @ self.weight.t(), self.group)


class MLP(nn.Module):
    def __init__(self, parallel: Parallel):
        super().__init__()
        self.first = ColumnParallelLinear(4, 12, parallel)
        self.second = RowParallelLinear(12, 4, parallel)
        self.head = ColumnParallelLinear(4, 6, parallel, gathers=True)

    def forward(self, x):
        return self.head(self.second(torch.relu(self.first(x))))


def average_gradients(model: nn.Module, group: Optional[dist.ProcessGroup]) -> None:
    if group is None or group.size() == 1:
        return
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, group=group)
        parameter.grad /= group.size()


def main():
    dist.init_process_group("gloo")
    parallel = parallel_of(width=dist.get_world_size())
    model = MLP(parallel)
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(3), requires_grad=True)
    for step in range(2):
        loss = model(x).square().mean()
        loss.backward()
        average_gradients(model, parallel.data)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.01 * parameter.grad
                parameter.grad = None
        print(f"step {step}: {loss.item():.5f}")
    print(parallel.rank, round(x.grad.sum().item(), 4))
    dist.barrier(group=parallel.tensor)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
