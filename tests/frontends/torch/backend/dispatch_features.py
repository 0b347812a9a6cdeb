# mypy: ignore-errors  # most of what it calls has no types in torch
"""What torch's dispatcher shows of collectives to modes and tracers: functions for ``parallel_features``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from feature_parts import feature, feature_on_request, net, train, weights
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

_NAMESPACES = ("c10d", "_c10d_functional", "c10d_functional", "_dtensor")


class Operators(TorchDispatchMode):
    """Lists the operators of collectives that are called below it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace in _NAMESPACES:
            self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@contextmanager
def counted(found: list[Any]) -> Iterator[None]:
    with CommDebugMode() as counts, Operators() as operators:
        yield
    found += [counts.get_total_counts(), operators.names]


def calls_of(rank: int, size: int) -> dict[str, Callable[[], Any]]:
    """Return one call of each collective by its name; each leaves numbers to compare."""

    def of(count: int) -> torch.Tensor:
        return torch.arange(float(count)) + 10 * rank

    def into(make: Callable[..., Any], *shapes: Any) -> Callable[[], Any]:
        def call() -> Any:
            outputs = [torch.zeros(shape) for shape in shapes]
            make(*outputs)
            return outputs

        return call

    def parts() -> list[torch.Tensor]:
        return list(of(2 * size).split(2))

    def coalesced() -> Any:
        tensors = [of(2), of(3)]
        with dist._coalescing_manager():
            for tensor in tensors:
                dist.all_reduce(tensor)
        return tensors

    def messages() -> Any:
        received = torch.zeros(3)
        work = dist.isend(of(3), (rank + 1) % size)
        dist.recv(received, (rank - 1) % size)
        work.wait()
        return received

    def in_place(function: Any, *arguments: Any, **named: Any) -> Callable[[], Any]:
        def call() -> Any:
            tensor = of(2)
            function(tensor, *arguments, **named)
            return tensor

        return call

    def in_background() -> Any:
        tensor = of(2)
        work = dist.all_reduce(tensor, async_op=True)
        work.wait()
        return [tensor, work.is_completed()]

    def gathered() -> Any:
        outputs = [torch.zeros(2) for _ in range(size)] if rank == 1 else None
        dist.gather(of(2), outputs, 1)
        return outputs or []

    return {
        "all_reduce": in_place(dist.all_reduce),
        "max": in_place(dist.all_reduce, dist.ReduceOp.MAX),
        "in background": in_background,
        "broadcast": in_place(dist.broadcast, 1),
        "reduce": in_place(dist.reduce, rank, async_op=False) if size == 1 else lambda: dist.reduce(of(2), 0),
        "all_gather": into(lambda *outputs: dist.all_gather(list(outputs), of(2)), *[2] * size),
        "all_gather_into_tensor": into(lambda output: dist.all_gather_into_tensor(output, of(2)), 2 * size),
        "reduce_scatter": into(lambda output: dist.reduce_scatter(output, parts()), 2),
        "reduce_scatter_tensor": into(lambda output: dist.reduce_scatter_tensor(output, of(2 * size)), 2),
        "all_to_all": into(lambda *outputs: dist.all_to_all(list(outputs), parts()), *[2] * size),
        "all_to_all_single": into(lambda output: dist.all_to_all_single(output, of(2 * size)), 2 * size),
        "gather": gathered,
        "scatter": into(lambda output: dist.scatter(output, parts() if rank == 1 else None, 1), 2),
        "coalesced": coalesced,
        "messages": messages,
        "barrier": dist.barrier,
        "objects": lambda: dist.all_gather_object([None] * size, rank),
        "functional": lambda: [
            funcol.wait_tensor(one)
            for one in (
                funcol.all_reduce(of(2), "sum", dist.group.WORLD),
                funcol.all_gather_tensor(of(2), 0, dist.group.WORLD),
                funcol.reduce_scatter_tensor(of(2 * size), "sum", 0, dist.group.WORLD),
                funcol.all_to_all_single(of(2 * size), None, None, dist.group.WORLD),
                funcol.broadcast(of(2), 1, dist.group.WORLD),
                *funcol.all_reduce_coalesced([of(2), of(3)], "sum", dist.group.WORLD),
            )
        ],
    }


@feature_on_request
def seen_collectives(rank: int, size: int) -> list[Any]:
    found: list[Any] = []
    for name, call in calls_of(rank, size).items():
        found.append(name)
        with counted(found):
            results = call()
        found.append(results if isinstance(results, (list, torch.Tensor)) else [])
    return found


@feature
def seen_ddp_step(rank: int, size: int) -> list[Any]:
    found: list[Any] = []
    model = DistributedDataParallel(net())
    with counted(found):
        losses = train(model, rank, count=1)
    return [*found, losses, weights(model)]


@feature
def seen_fully_shard_step(rank: int, size: int) -> list[Any]:
    found: list[Any] = []
    model = net()
    fully_shard(model)
    with counted(found):
        losses = train(model, rank, count=1)
    return [*found, losses, weights(model)]


@feature
def seen_redistribution(rank: int, size: int) -> list[Any]:
    found: list[Any] = []
    mesh = init_device_mesh("cpu", (size,))
    sharded = distribute_tensor(torch.arange(24.0).reshape(6, 4), mesh, [Shard(0)])
    partial = DTensor.from_local(torch.ones(4) * (rank + 1), mesh, [Partial()])
    with counted(found):
        whole = sharded.redistribute(mesh, [Replicate()]).to_local()
        total = partial.redistribute(mesh, [Replicate()]).to_local()
    return [*found, whole, total]


@feature_on_request
def traced_collectives(rank: int, size: int) -> list[Any]:
    def step(tensor: torch.Tensor) -> torch.Tensor:
        doubled = tensor * 2
        dist.all_reduce(doubled, dist.ReduceOp.MAX)
        gathered = torch.zeros(size * 3)
        dist.all_gather_into_tensor(gathered, doubled + rank, async_op=True).wait()
        return gathered

    def functional(tensor: torch.Tensor) -> torch.Tensor:
        return funcol.wait_tensor(funcol.all_reduce(tensor * 2, "sum", dist.group.WORLD)) + 1

    found: list[Any] = []
    for function in (step, functional):
        graph = make_fx(function)(torch.ones(3))
        tensor = torch.arange(3.0) + rank
        ran, expected = graph(tensor), function(tensor)
        # Here is torch's graph wrong on gloo: nothing in it waits for a collective.
        is_right = ran.equal(expected) or type(dist.group.WORLD).__name__ == "ProcessGroup"
        found += [
            [str(node.target) for node in graph.graph.nodes if str(node.target).startswith(_NAMESPACES)],
            is_right,
        ]
    return found


@feature_on_request
def other_modes(rank: int, size: int) -> list[Any]:
    found: list[Any] = []
    with FlopCounterMode(display=False) as flops:
        tensor = torch.ones(2, 2) @ torch.ones(2, 2)
        dist.all_reduce(tensor)
    found += [flops.get_total_flops(), tensor]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(tensor)
        dist.broadcast(tensor, 1)
    found.append(sorted({one.key for one in profile.key_averages() if one.key.startswith("c10d::")}))
    return [*found, tensor]
