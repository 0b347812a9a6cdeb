# mypy: ignore-errors  # most of what it calls has no types in torch
"""Collectives, messages, objects and groups, as a program calls them: functions for ``parallel_features``."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.distributed.nn.functional as dist_nn
import torch.utils.data
from feature_parts import feature, net, train, weights
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

_CPU = torch.device("cpu")


@feature
def collectives(rank: int, size: int) -> list[Any]:
    def of(count: int) -> torch.Tensor:
        return torch.arange(float(count)) + 10 * rank

    found: list[Any] = []
    for asynchronous in (False, True):
        results = {name: of(2 * size) for name in ("sum", "max", "sent", "root")}
        gathered = [torch.empty(3) for _ in range(size)]
        whole, part, exchanged = torch.empty(3 * size), torch.empty(2), torch.empty(2 * size)
        received, scattered = [torch.empty(2) for _ in range(size)], torch.empty(2)
        here = rank == 1
        works = [
            dist.all_reduce(results["sum"], async_op=asynchronous),
            dist.all_reduce(results["max"], dist.ReduceOp.MAX, async_op=asynchronous),
            dist.broadcast(results["sent"], 1, async_op=asynchronous),
            dist.reduce(results["root"], 0, async_op=asynchronous),
            dist.all_gather(gathered, of(3), async_op=asynchronous),
            dist.all_gather_into_tensor(whole, of(3), async_op=asynchronous),
            dist.reduce_scatter_tensor(part, of(2 * size), async_op=asynchronous),
            dist.all_to_all_single(exchanged, of(2 * size), async_op=asynchronous),
            dist.all_to_all(received, list(of(2 * size).split(2)), async_op=asynchronous),
            dist.scatter(scattered, list(of(2 * size).split(2)) if here else None, 1, async_op=asynchronous),
            dist.barrier(async_op=asynchronous),
        ]
        for work in works:
            if asynchronous:
                work.wait()
        if rank:
            results.pop("root")  # partial sums with gloo
        found += [*results.values(), *gathered, whole, part, exchanged, *received, scattered]
    return found


@feature
def futures(rank: int, size: int) -> list[Any]:
    tensor = torch.ones(4) * (rank + 1)
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    other = torch.ones(4) * (rank + 1)
    future = dist.all_reduce(other, async_op=True).get_future().then(lambda done: done.value()[0] + 1)
    return [tensor, work.is_completed(), future.wait(), other]


@feature
def messages(rank: int, size: int) -> list[Any]:
    after, before = (rank + 1) % size, (rank - 1) % size
    received = [torch.empty(3) for _ in range(2)]
    operations = [dist.P2POp(dist.isend, torch.ones(3) * rank, after), dist.P2POp(dist.irecv, received[0], before)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    sending = dist.isend(torch.ones(3) * -rank, after, tag=5)
    source = dist.recv(received[1], None if size == 2 else before, tag=5)
    sending.wait()
    return [*received, source]


@feature
def coalesced(rank: int, size: int) -> list[Any]:
    tensors = [torch.ones(2) * rank, torch.ones(3) * (rank + 1)]
    with dist._coalescing_manager() as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    gathered = [torch.empty(2 * size), torch.empty(3 * size)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for output, tensor in zip(gathered, tensors, strict=True):
            dist.all_gather_into_tensor(output, tensor + rank)
    manager.wait()
    return [*tensors, *gathered]


@feature
def objects(rank: int, size: int) -> list[Any]:
    gathered: list[Any] = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * rank})
    sent = [rank, "of rank"] if rank == 1 else [None, None]
    dist.broadcast_object_list(sent, 1)
    mine: list[Any] = [None]
    dist.scatter_object_list(mine, [f"for {one}" for one in range(size)] if rank == 0 else None, 0)
    collected: list[Any] | None = [None] * size if rank == 0 else None
    dist.gather_object(rank * 2, collected, 0)
    return [gathered, sent, mine, collected]


@feature
def functional_collectives(rank: int, size: int) -> list[Any]:
    tensor = torch.arange(4.0 * size) + rank
    group = dist.group.WORLD
    return [
        funcol.wait_tensor(one)
        for one in (
            funcol.all_reduce(tensor, "sum", group),
            funcol.all_gather_tensor(tensor, 0, group),
            funcol.reduce_scatter_tensor(tensor, "sum", 0, group),
            funcol.all_to_all_single(tensor, None, None, group),
            funcol.broadcast(tensor, 1, group),
            *funcol.all_reduce_coalesced([tensor, tensor + 1], "sum", group),
        )
    ]


@feature
def collectives_with_gradients(rank: int, size: int) -> list[Any]:
    tensor = (torch.arange(4.0) + rank).requires_grad_()
    total = dist_nn.all_reduce(tensor * 2)
    gathered = dist_nn.all_gather(tensor * 3)
    (total.square().sum() + sum((place + 1) * one.sum() for place, one in enumerate(gathered))).backward()
    return [total, *gathered, tensor.grad]


@feature
def compiled_collective(rank: int, size: int) -> list[Any]:
    group = dist.group.WORLD

    @torch.compile(backend="aot_eager", fullgraph=True)
    def step(tensor: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(tensor * 2, "sum", group) + 1

    return [step(torch.arange(4.0) + rank)]


@feature
def compiled_ddp(rank: int, size: int) -> list[Any]:
    model = torch.compile(DistributedDataParallel(net()), backend="aot_eager")
    return [train(model, rank), weights(model)]


@feature
def compiled_fsdp2(rank: int, size: int) -> list[Any]:
    model = net()
    for layer in (model[0], model[2], model):
        fully_shard(layer)
    return [train(torch.compile(model, backend="aot_eager"), rank), weights(model)]


@feature
def groups(rank: int, size: int) -> list[Any]:
    odd_and_even = dist.new_subgroups_by_enumeration([[0, *range(2, size, 2)], list(range(1, size, 2))])[0]
    local = dist.new_group([rank], use_local_synchronization=True)
    every = dist.new_group(backend="gloo")
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total, group=odd_and_even)
    found = [
        dist.get_world_size(odd_and_even),
        dist.get_rank(odd_and_even),
        dist.get_process_group_ranks(odd_and_even),
        dist.get_world_size(local),
        dist.get_global_rank(odd_and_even, 0),
        total.clone(),
    ]
    dist.barrier(every)  # gloo breaks on a rank that is still joining when another destroys the group
    for group in (odd_and_even, local, every):
        dist.destroy_process_group(group)
    return found


@feature
def distributed_sampler(rank: int, size: int) -> list[Any]:
    sampler = torch.utils.data.DistributedSampler(range(13), seed=3)
    sampler.set_epoch(2)
    return [list(sampler), len(sampler)]
