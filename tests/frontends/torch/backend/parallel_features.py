# mypy: ignore-errors  # most of what it calls has no types in torch
"""What torch builds on its process groups: each feature is a function of this rank that returns numbers, which are to be the same on every backend.

They are called one after another in one world. Nothing here knows which backend it runs on.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.distributed.checkpoint as dcp
import torch.distributed.nn.functional as dist_nn
import torch.utils.data
from torch import nn
from torch.distributed.algorithms._comm_hooks import default_hooks as fsdp_hooks
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, ShardingStrategy, fully_shard
from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
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
from torch.nn.parallel import DistributedDataParallel

__all__ = ["FEATURES", "run_all"]

FEATURES: dict[str, Callable[[int, int], list[Any]]] = {}
_CPU = torch.device("cpu")


def feature(function: Callable[[int, int], list[Any]]) -> Callable[[int, int], list[Any]]:
    FEATURES[function.__name__] = function
    return function


def run_all(backend: str, names: Sequence[str]) -> dict[str, Any]:
    """Return what each of the features *names* (none: of all) returns in a world of *backend*, or what it raises, and the class of the world's group."""
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    results: dict[str, Any] = {"group": type(dist.group.WORLD).__name__}
    for name in names or FEATURES:
        torch.manual_seed(0)
        try:
            results[name] = [plain(one) for one in FEATURES[name](rank, size)]
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
        dist.barrier()
    dist.destroy_process_group()
    return results


def plain(value: Any) -> Any:
    """Return *value* with lists of numbers in place of tensors."""
    if isinstance(value, DTensor):
        value = value.full_tensor()
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value.detach().tolist() if isinstance(value, torch.Tensor) else value


def net(width: int = 8) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))


def batches(rank: int, count: int = 3, width: int = 8) -> Iterator[torch.Tensor]:
    generator = torch.Generator().manual_seed(100 + rank)
    for _ in range(count):
        yield torch.randn(4, width, generator=generator)


def train(model: nn.Module, rank: int, optimizer: Any = None, count: int = 3) -> list[Any]:
    """Train *model* for *count* steps, and return the losses."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for batch in batches(rank, count):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def weights(model: nn.Module) -> list[Any]:
    return [plain(one) for one in model.parameters()]


# DistributedDataParallel


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


# FSDP


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


# DeviceMesh, DTensor, tensor parallel


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


# Pipelines


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


# Checkpoints and state


def shared_folder() -> Path:
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder)
    return Path(str(folder[0]))


@feature
def distributed_checkpoint(rank: int, size: int) -> list[Any]:
    folder, model = shared_folder(), net()
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    train(model, rank, optimizer)
    kept = weights(model)
    dcp.save(dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True)), checkpoint_id=folder)
    train(model, rank, optimizer)
    state = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    return [kept, weights(model), kept == weights(model), train(model, rank, optimizer)]


@feature
def asynchronous_checkpoint(rank: int, size: int) -> list[Any]:
    folder = shared_folder()
    mesh = init_device_mesh("cpu", (size,))
    state = {"sharded": distribute_tensor(torch.arange(8.0), mesh, [Shard(0)]), "plain": torch.ones(3)}
    dcp.async_save(state, checkpoint_id=folder, process_group=dist.new_group(backend="gloo")).result()
    empty = {"sharded": distribute_tensor(torch.zeros(8), mesh, [Shard(0)]), "plain": torch.zeros(3)}
    dcp.load(empty, checkpoint_id=folder)
    return [empty["sharded"], empty["plain"]]


@feature
def full_state_dict(rank: int, size: int) -> list[Any]:
    model = net()
    fully_shard(model)
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    return [sorted(state), *state.values()]


# Collectives


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
    for group in (odd_and_even, local, every):
        dist.destroy_process_group(group)
    return found


@feature
def distributed_sampler(rank: int, size: int) -> list[Any]:
    sampler = torch.utils.data.DistributedSampler(range(13), seed=3)
    sampler.set_epoch(2)
    return [list(sampler), len(sampler)]
