# mypy: ignore-errors  # most of what it calls has no types in torch
"""DistributedDataParallel, its hooks, and what averages models: functions for ``parallel_features``."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.utils.data
from feature_parts import batches, feature, net, train, weights
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

_CPU = torch.device("cpu")


@feature
def ddp(rank: int, size: int) -> list[Any]:
    model = DistributedDataParallel(net())
    return [train(model, rank), weights(model)]


@feature
def ddp_small_buckets(rank: int, size: int) -> list[Any]:
    model = DistributedDataParallel(net(), bucket_cap_mb=1e-4, gradient_as_bucket_view=True)
    return [train(model, rank), weights(model)]


@feature
def ddp_static_graph(rank: int, size: int) -> list[Any]:
    model = DistributedDataParallel(net(), static_graph=True)
    return [train(model, rank), weights(model)]


class _Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(8, 8), nn.Linear(8, 8), nn.BatchNorm1d(8)
        self.calls = 0

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.norm((self.first if self.calls % 2 else self.second)(batch))


@feature
def ddp_unused_parameters_and_buffers(rank: int, size: int) -> list[Any]:
    model = DistributedDataParallel(_Branches(), find_unused_parameters=True)
    return [train(model, rank), weights(model), *model.module.norm.buffers()]


@feature
def ddp_no_sync(rank: int, size: int) -> list[Any]:
    model = DistributedDataParallel(net())
    first, second = batches(rank, 2)
    with model.no_sync():
        model(first).square().mean().backward()
    model(second).square().mean().backward()
    return [one.grad for one in model.parameters()]


@feature
def ddp_join(rank: int, size: int) -> list[Any]:
    model = DistributedDataParallel(net())
    with Join([model]):
        losses = train(model, rank, count=2 + rank)
    return [losses, weights(model)]


def with_hook(rank: int, state: Any, hook: Any) -> list[Any]:
    model = DistributedDataParallel(net())
    model.register_comm_hook(state, hook)
    return [train(model, rank, count=5), weights(model)]


@feature
def ddp_allreduce_hook(rank: int, size: int) -> list[Any]:
    return with_hook(rank, None, default_hooks.allreduce_hook)


@feature
def ddp_fp16_hook(rank: int, size: int) -> list[Any]:
    return with_hook(rank, None, default_hooks.fp16_compress_hook)


@feature
def ddp_power_sgd_hook(rank: int, size: int) -> list[Any]:
    return with_hook(
        rank,
        powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, min_compression_rate=1),
        powerSGD_hook.powerSGD_hook,
    )


@feature
def ddp_own_hook(rank: int, size: int) -> list[Any]:
    def hook(state, bucket):  # type: ignore[no-untyped-def]  # DDP reads annotations, and takes no other class
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: done.value()[0] / size).then(lambda done: done.value() * 2)

    return with_hook(rank, None, hook)


@feature
def ddp_gathering_hook(rank: int, size: int) -> list[Any]:
    def hook(state, bucket):  # type: ignore[no-untyped-def]  # DDP reads annotations, and takes no other class
        parts = [torch.empty_like(bucket.buffer()) for _ in range(size)]
        work = dist.all_gather(parts, bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: torch.stack(parts).mean(0))

    return with_hook(rank, None, hook)


@feature
def ddp_post_local_sgd(rank: int, size: int) -> list[Any]:
    model = DistributedDataParallel(net())
    state = post_localSGD_hook.PostLocalSGDState(None, dist.new_subgroups(1)[0], start_localSGD_iter=2)
    model.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
    optimizer = PostLocalSGDOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), PeriodicModelAverager(period=2, warmup_steps=1)
    )
    return [train(model, rank, optimizer, 6), weights(model)]


@feature
def periodic_model_averager(rank: int, size: int) -> list[Any]:
    model = net()
    averager = PeriodicModelAverager(period=2, warmup_steps=0)
    losses = []
    for _ in range(4):
        losses += train(model, rank, count=1)
        averager.average_parameters(model.parameters())
    return [losses, weights(model)]


@feature
def hierarchical_model_averager(rank: int, size: int) -> list[Any]:
    model = net()
    averager = HierarchicalModelAverager({2: 2, 4: 4} if size == 4 else {2: 2}, warmup_steps=0)
    losses = []
    for _ in range(4):
        losses += train(model, rank, count=1)
        averager.average_parameters(model.parameters())
    return [losses, weights(model)]


@feature
def zero_redundancy_optimizer(rank: int, size: int) -> list[Any]:
    model = DistributedDataParallel(net())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    losses = train(model, rank, optimizer)
    optimizer.consolidate_state_dict(0)
    return [losses, weights(model), len(optimizer.state_dict()["state"]) if rank == 0 else 0]


@feature
def ddp_in_a_group(rank: int, size: int) -> list[Any]:
    group = dist.new_group([0, 1])
    if rank > 1:
        return []
    model = DistributedDataParallel(net(), process_group=group)
    return [train(model, rank), weights(model), dist.get_world_size(group), dist.get_process_group_ranks(group)]
