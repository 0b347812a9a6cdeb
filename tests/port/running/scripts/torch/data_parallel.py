"""Data-parallel SGD: every rank computes the gradients of its share of the data, in buckets that are reduced in the background."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import distributed as dist
from torch import nn

REDUCTIONS = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}


def is_distributed() -> bool:
    return dist.is_available() and dist.is_initialized()


def world() -> tuple[int, int]:
    if not is_distributed():
        return 0, 1
    return dist.get_rank(), dist.get_world_size()


def reduced(value: float, how: str = "sum") -> float:
    tensor = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(tensor, op=REDUCTIONS[how])
    return tensor.item()


class Buckets:
    """Gathers gradients until there are enough to be worth a message."""

    def __init__(self, parameters: list[nn.Parameter], most: int, group: dist.ProcessGroup | None = None):
        self.parameters = parameters
        self.most = most
        self.group = group
        self.handles = []
        self.reduce: Callable = partial(dist.all_reduce, group=self.group, async_op=True)

    def __iter__(self) -> Iterator[list[nn.Parameter]]:
        bucket: list[nn.Parameter] = []
        for parameter in reversed(self.parameters):
            bucket.append(parameter)
            if sum(each.numel() for each in bucket) >= self.most:
                yield bucket
                bucket = []
        if bucket:
            yield bucket

    def start(self) -> None:
        for bucket in self:
            flat = torch.cat([parameter.grad.reshape(-1) for parameter in bucket])
            self.handles.append((self.reduce(flat), flat, bucket))

    def finish(self) -> None:
        size = dist.get_world_size(self.group)
        for handle, flat, bucket in self.handles:
            handle.wait()
            flat /= size
            at = 0
            for parameter in bucket:
                parameter.grad.copy_(flat[at : at + parameter.numel()].view_as(parameter))
                at += parameter.numel()
        self.handles.clear()


def model_of(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))


def synchronise(model: nn.Module, root: int = 0) -> None:
    """Have every rank begin with the root's parameters."""
    handles = [dist.broadcast(tensor.data, src=root, async_op=True) for tensor in model.parameters()]
    for handle in handles:
        if handle is not None:
            handle.wait()


def batches(rank: int, size: int, steps: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(17)
    for _ in range(steps):
        x = torch.randn(4 * size, 4, generator=generator)
        yield x[rank::size], (x[rank::size].sum(dim=1) > 0).long()


def train(arguments: argparse.Namespace) -> None:
    rank, size = world()
    model = model_of(seed=rank)
    synchronise(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.rate)
    buckets = Buckets(list(model.parameters()), arguments.bucket)
    for step, (x, y) in enumerate(batches(rank, size, arguments.steps)):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        buckets.start()
        buckets.finish()
        optimizer.step()
        mean, worst = reduced(loss.item()) / size, reduced(loss.item(), "max")
        if rank == 0:
            print(f"step {step} of {size} ranks: {mean:.6f}, worst {worst:.6f}")
    checksum = torch.stack([parameter.detach().sum() for parameter in model.parameters()])
    everywhere = [torch.empty_like(checksum) for _ in range(size)]
    dist.all_gather(everywhere, checksum)
    assert all(torch.equal(checksum, each) for each in everywhere), "the ranks have diverged"
    print(rank, [round(value, 5) for value in checksum.tolist()])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--bucket", type=int, default=20)
    arguments = parser.parse_args()
    local = int(os.environ.get("LOCAL_RANK", 0))
    dist.init_process_group(backend="gloo")
    try:
        assert local < dist.get_world_size()
        train(arguments)
        dist.barrier()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
