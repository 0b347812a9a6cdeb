"""Time steps of DDP and FSDP2 on gloo and on the engine as torch's backend, in the same processes, in turns.

    python3 -m pip install '.[test]'
    torchrun --nproc-per-node 2 benchmarks/torch_parallel.py

A step is forward, backward and an SGD update. The small model has about 1 M parameters, the middle one about 100 M. A step's time is that of
the slowest rank; printed is the median over rounds, in milliseconds, and the ratio to gloo. The floor is the same step without communication. Below
stands what a small all_reduce costs: through torch's own function, through the method of the group that it calls, and through the frontend.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

import shim.frontends.torch.distributed as frontend
import shim.torch_backend  # noqa: F401  # registers "shim"

BACKENDS = ("gloo", "shim")
MODELS = {"small": (512, 4), "middle": (3136, 10)}  # width and number of layers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="steps of each model on each backend in each turn")
    parser.add_argument("--turns", type=int, default=3, help="how often the backends take turns")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), help="which; both")
    given = parser.parse_args()
    torch.set_num_threads(1)
    times: dict[tuple[str, str, str], list[float]] = {}
    calls: dict[str, list[float]] = {}
    for turn in range(given.turns):
        for backend in BACKENDS:
            with world(backend, turn):
                for name in given.models:
                    for kind, wrap in (("DDP", distributed), ("FSDP2", sharded), ("floor", alone)):
                        step = step_of(wrap(*MODELS[name]), MODELS[name][0])
                        times.setdefault((name, kind, backend), []).extend(timed(step, given.rounds))
                for what, call in small_calls(backend).items():
                    calls.setdefault(what, []).extend(each / 200 for each in timed(call, given.rounds))
    if int(os.environ["RANK"]) == 0:
        show(times, calls)


@contextmanager
def world(backend: str, turn: int) -> Iterator[None]:
    """A world of *backend*. The turns' worlds meet under names of their own."""
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    stores: Any = dist
    store = stores.PrefixStore(f"{backend} {turn}", stores.TCPStore(*address, is_master=False))
    dist.init_process_group(
        backend, store=store, rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"])
    )
    try:
        yield
    finally:
        dist.barrier()
        dist.destroy_process_group()


def alone(width: int, layers: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)])


def distributed(width: int, layers: int) -> nn.Module:
    return nn.parallel.DistributedDataParallel(alone(width, layers))


def sharded(width: int, layers: int) -> nn.Module:
    model = alone(width, layers)
    for layer in model.children():
        fully_shard(layer)
    fully_shard(model)
    return model


def step_of(model: nn.Module, width: int) -> Callable[[], None]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(4, width)

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return step


def small_calls(backend: str) -> dict[str, Callable[[], None]]:
    """Return 200 all_reduces of 8 bytes through each of the ways to call."""
    tensor = torch.ones(2)
    options = dist.AllreduceOptions()
    options.asyncOp = False
    group: Any = dist.group.WORLD
    ways: dict[str, Callable[[], Any]] = {
        f"torch.distributed.all_reduce, {backend}": lambda: dist.all_reduce(tensor),
        f"the group's allreduce, {backend}": lambda: group.allreduce([tensor], options).wait(),
    }
    if backend == "shim":
        ways["the frontend's all_reduce, the same group"] = lambda: frontend.all_reduce(tensor)
    return {what: lambda call=call: [call() for _ in range(200)] for what, call in ways.items()}  # type: ignore[misc]


def timed(action: Callable[[], Any], rounds: int) -> list[float]:
    """Return how many milliseconds *action* takes on the slowest rank, in each of *rounds* after two."""
    found = []
    for _ in range(rounds + 2):
        dist.barrier()
        begun = time.perf_counter()
        action()
        found.append((time.perf_counter() - begun) * 1e3)
    slowest = torch.tensor(found[2:])
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.tolist()


def show(times: dict[tuple[str, str, str], list[float]], calls: dict[str, list[float]]) -> None:
    ranks = os.environ["WORLD_SIZE"]
    print(f"A step on {ranks} ranks, median in ms (lowest, highest quartile)")
    for name, kind, backend in times:
        median, low, high = _spread(times[name, kind, backend])
        gloos = statistics.median(times[name, kind, "gloo"])
        print(f"  {name:7} {kind:6} {backend:5} {median:9.2f} ({low:.2f} to {high:.2f})  {median / gloos:5.2f} x gloo")
    print("An all_reduce of 8 bytes, median in us (lowest, highest quartile)")
    for what, found in calls.items():
        median, low, high = _spread([each * 1e3 for each in found])
        print(f"  {what:45} {median:9.2f} ({low:.2f} to {high:.2f})")


def _spread(found: list[float]) -> tuple[float, float, float]:
    low, median, high = statistics.quantiles(found, n=4)
    return median, low, high


if __name__ == "__main__":
    main()
