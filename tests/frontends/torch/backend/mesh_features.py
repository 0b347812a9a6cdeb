# mypy: ignore-errors  # most of what it calls has no types in torch
"""Meshes of devices, DTensor, tensor parallelism and pipelines: functions for ``parallel_features``."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.utils.data
from feature_parts import feature, net, train, weights
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

_CPU = torch.device("cpu")


@feature
def device_mesh(rank: int, size: int) -> list[Any]:
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("a", "b"))
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total, group=mesh.get_group("b"))
    flat = mesh["a", "b"]._flatten("both")
    whole = torch.tensor([rank + 1.0])
    dist.all_reduce(whole, group=flat.get_group())
    again = DeviceMesh.from_group(mesh.get_group("b"), "cpu")
    return [mesh.get_coordinate(), mesh["a"].get_local_rank(), total, whole, again.mesh, mesh.mesh]


@feature
def dtensor(rank: int, size: int) -> list[Any]:
    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(24.0).reshape(6, 4)
    sharded = distribute_tensor(whole, mesh, [Shard(0)])
    partial = DTensor.from_local(whole * (rank + 1), mesh, [Partial()])
    across = sharded.redistribute(mesh, [Shard(1)])
    return [
        sharded.to_local(),
        across.to_local(),
        sharded.full_tensor(),
        partial.redistribute(mesh, [Replicate()]).to_local(),
        partial.redistribute(mesh, [Shard(0)]).to_local(),
        (sharded @ distribute_tensor(whole.T.contiguous(), mesh, [Replicate()])).full_tensor(),
        sharded.sum(),
        sharded.softmax(1),
        distribute_tensor(whole, mesh, [Shard(0)]).max(),
    ]


@feature
def dtensor_random(rank: int, size: int) -> list[Any]:
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(7)
    return [
        torch.distributed.tensor.zeros(4, 4, device_mesh=mesh, placements=[Shard(0)]),
        distribute_module(net(), mesh)(distribute_tensor(torch.ones(4, 8), mesh, [Replicate()])),
    ]


@feature
def tensor_parallel(rank: int, size: int) -> list[Any]:
    mesh = init_device_mesh("cpu", (size,))
    model = parallelize_module(net(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return [train(model, 0), weights(model)]


@feature
def sequence_parallel(rank: int, size: int) -> list[Any]:
    mesh = init_device_mesh("cpu", (size,))
    model = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8))
    plan = {
        "0": SequenceParallel(sequence_dim=0),
        "1": PrepareModuleInput(input_layouts=(Shard(0),), desired_input_layouts=(Replicate(),)),
    }
    parallelize_module(model, mesh, plan)
    return [model[0](torch.ones(4, 8) * (rank + 1)).to_local()]


@feature
def parallel_loss(rank: int, size: int) -> list[Any]:
    mesh = init_device_mesh("cpu", (size,))
    scores = torch.arange(32.0).reshape(4, 8) / 10
    sharded = distribute_tensor(scores, mesh, [Shard(1)]).requires_grad_()
    with loss_parallel():
        loss = nn.functional.cross_entropy(sharded, torch.tensor([1, 2, 3, 4]))
        loss.backward()
    return [loss, sharded.grad]


def pipeline(rank: int, size: int, schedule: Any) -> list[Any]:
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(size)]
    stage = PipelineStage(layers[rank], rank, size, _CPU)
    run = schedule(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    losses: list[Any] = []
    batch = torch.arange(64.0).reshape(8, 8) / 64
    if rank == 0:
        run.step(batch)
    elif rank == size - 1:
        run.step(target=torch.ones(8, 8), losses=losses)
    else:
        run.step()
    return [losses, *[one.grad for one in layers[rank].parameters()]]


@feature
def pipeline_gpipe(rank: int, size: int) -> list[Any]:
    return pipeline(rank, size, ScheduleGPipe)


@feature
def pipeline_1f1b(rank: int, size: int) -> list[Any]:
    return pipeline(rank, size, Schedule1F1B)
