"""What torch's modes and its profiler see of the frontend's functional collectives, on every rank or on one of them alone."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
from torch.distributed.tensor.debug import CommDebugMode
from torch_world import world

import shim.frontends.torch.distributed as dist
import shim.frontends.torch.distributed._functional_collectives as functional


def call_all(rank: int, size: int) -> list[torch.Tensor]:
    def of(count: int) -> torch.Tensor:
        return torch.arange(float(count)) + 10 * rank

    group = dist.group.WORLD
    started = [
        functional.all_reduce(of(2), "max", group),
        functional.broadcast(of(2), 1, group),
        functional.all_gather_single(of(2), 0, group),
        functional.all_gather_single(of(2).reshape(1, 2), 1, group),
        functional.reduce_scatter_single(of(2 * size), "sum", 0, group),
        functional.reduce_scatter_single(of(2 * size).reshape(1, -1), "sum", 1, group),
        functional.all_to_all_single(of(2 * size), None, None, group),
        *functional.all_reduce_coalesced([of(2), of(3)], "sum", group),
    ]
    return [functional.wait_tensor(one) for one in started]


COUNTS = {
    "all_reduce": 3,
    "broadcast": 1,
    "all_gather_into_tensor": 2,
    "reduce_scatter_tensor": 2,
    "all_to_all_single": 1,
}


@pytest.mark.ranks(3)
@pytest.mark.parametrize("watching", [{0}, {0, 1, 2}])
def test_a_mode_counts_them_and_changes_nothing(rank: int, world_size: int, watching: set[int]) -> None:
    mode: Any = CommDebugMode() if rank in watching else contextlib.nullcontext()
    with world():
        unseen = call_all(rank, world_size)
        with mode as counts:
            seen = call_all(rank, world_size)
    assert all(map(torch.equal, seen, unseen))
    if rank in watching:
        assert {str(kind).rpartition(".")[2]: count for kind, count in counts.get_comm_counts().items()} == COUNTS


@pytest.mark.ranks(2)
def test_gradients_are_seen_too(rank: int, world_size: int) -> None:
    tensor = torch.full((3,), 1.0 + rank, requires_grad=True)
    with world(), CommDebugMode() as counts:
        functional.all_reduce(tensor, "product", dist.group.WORLD).sum().backward()
    assert tensor.grad is not None
    assert tensor.grad.tolist() == [2.0 * (2.0 - rank)] * 3
    assert counts.get_total_counts() == 3  # the call, its backward, and the factors of the others


@pytest.mark.ranks(2)
def test_the_profiler_records_them(rank: int, world_size: int) -> None:
    with world(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        functional.wait_tensor(functional.all_reduce(torch.ones(2), "sum", dist.group.WORLD))
    assert "_c10d_functional::all_reduce" in {event.key for event in profile.key_averages()}
