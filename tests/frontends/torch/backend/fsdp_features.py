# mypy: ignore-errors  # most of what it calls has no types in torch
"""FSDP, of both kinds, and what it is combined with: functions for ``parallel_features``."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.utils.data
from feature_parts import batches, feature, net, train, weights
from torch import nn
from torch.distributed.algorithms._comm_hooks import default_hooks as fsdp_hooks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, ShardingStrategy, fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

_CPU = torch.device("cpu")


@feature
def fsdp1(rank: int, size: int) -> list[Any]:
    model = FullyShardedDataParallel(net(), device_id=_CPU)
    losses = train(model, rank)
    with FullyShardedDataParallel.summon_full_params(model):
        return [losses, weights(model)]


@feature
def fsdp1_shard_grad_op(rank: int, size: int) -> list[Any]:
    model = FullyShardedDataParallel(net(), device_id=_CPU, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)
    losses = train(model, rank)
    model(next(batches(rank, 1))).square().mean().backward()
    return [losses, model.clip_grad_norm_(0.5).item()]


@feature
def fsdp1_comm_hook(rank: int, size: int) -> list[Any]:
    model = FullyShardedDataParallel(net(), device_id=_CPU, sharding_strategy=ShardingStrategy.NO_SHARD)
    model.register_comm_hook(fsdp_hooks.DefaultState(dist.group.WORLD), fsdp_hooks.allreduce_hook)
    return train(model, rank)


@feature
def fsdp2(rank: int, size: int) -> list[Any]:
    model = net()
    for layer in (model[0], model[2], model):
        fully_shard(layer)
    return [train(model, rank), weights(model)]


@feature
def fsdp2_mixed_precision(rank: int, size: int) -> list[Any]:
    model = net()
    fully_shard(model, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
    return [train(model, rank), weights(model)]


@feature
def fsdp2_clip_grad_norm(rank: int, size: int) -> list[Any]:
    model = net()
    fully_shard(model, reshard_after_forward=False)
    model(next(batches(rank, 1))).square().mean().backward()
    return [nn.utils.clip_grad_norm_(model.parameters(), 0.1), *[one.grad for one in model.parameters()]]


@feature
def fsdp2_with_tensor_parallel(rank: int, size: int) -> list[Any]:
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("data", "tensor"))
    model = parallelize_module(net(), mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["data"])
    return [train(model, mesh["data"].get_local_rank()), weights(model)]


@feature
def hybrid_shard(rank: int, size: int) -> list[Any]:
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("replicate", "shard"))
    model = net()
    fully_shard(model, mesh=mesh)
    return [train(model, rank), weights(model)]
