# mypy: ignore-errors  # most of what it calls has no types in torch
"""What hooks of a group see and do, which torch has since 2.14: functions for ``parallel_features``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from dispatch_features import calls_of
from feature_parts import feature_on_request, net, train, weights
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel


@contextmanager
def hooked(seen: list[Any]) -> Iterator[None]:
    """Note in *seen* what two pre-hooks and a post-hook of the world are given."""
    group = dist.group.WORLD
    numbers: dict[int, int] = {}  # the calls', from zero here: a group counts on

    def number(call: Any) -> int:
        return numbers.setdefault(call.op_id, len(numbers))

    def shapes(tensors: list[torch.Tensor]) -> list[Any]:
        return [list(one.shape) for one in tensors]

    def before(call: Any) -> None:
        tensors = shapes(call.input_tensors), shapes(call.output_tensors)
        seen.append([number(call), call.name.name, call.async_op, *tensors, call.root])

    def after(call: Any) -> None:
        seen.append([number(call), call.name.name, call.async_op, isinstance(call.work, dist.Work)])

    group.register_pre_hook(7, before)
    group.register_pre_hook(3, lambda call: seen.append(["first", number(call)]))
    group.register_post_hook(5, after)
    yield
    for hook in (7, 3):
        group.unregister_pre_hook(hook)
    group.unregister_post_hook(5)


@feature_on_request
def hooked_collectives(rank: int, size: int) -> list[Any]:
    found: list[Any] = []
    for name, call in calls_of(rank, size).items():
        found.append([name])
        with hooked(found[-1]):
            results = call()
        found.append(results if isinstance(results, (list, torch.Tensor)) else [])
    return found


def hooked_training(wrap: Callable[[Any], Any], rank: int) -> list[Any]:
    seen: list[Any] = []
    with hooked(seen):
        model = wrap(net())
        losses = train(model, rank, count=2)
    return [seen, losses, weights(model)]


@feature_on_request
def hooked_ddp_step(rank: int, size: int) -> list[Any]:
    return hooked_training(DistributedDataParallel, rank)


@feature_on_request
def hooked_fully_shard_step(rank: int, size: int) -> list[Any]:
    return hooked_training(fully_shard, rank)


@feature_on_request
def hooks_that_call_raise_and_go(rank: int, size: int) -> list[Any]:
    group = dist.group.WORLD
    found: list[Any] = []
    inner: list[torch.Tensor] = []

    def nested(call: Any) -> None:
        if not inner:  # a hook that takes itself back ends torch's process
            inner.append(torch.ones(1))
            dist.all_reduce(inner[0])

    def raising(call: Any) -> None:
        raise KeyError("raised")

    def reduced() -> torch.Tensor:
        tensor = torch.ones(2) + rank
        try:
            dist.all_reduce(tensor)
        except KeyError as error:
            found.append(str(error))
        return tensor

    group.register_pre_hook(2, lambda call: found.append("replaced"))
    group.register_pre_hook(2, lambda call: found.append(call.name.name))
    found.append(reduced())
    group.register_pre_hook(4, nested)
    found += [reduced(), *inner]
    group.unregister_pre_hook(4)
    group.register_pre_hook(1, raising)  # the hook 2, which comes later, is not called
    found.append(reduced())
    group.unregister_pre_hook(1)
    group.unregister_pre_hook(99)
    found.append(reduced())
    group.unregister_pre_hook(2)
    group.register_post_hook(1, raising)
    reduced()
    group.unregister_post_hook(1)
    found.append(reduced())
    return found
