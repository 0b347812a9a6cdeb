"""Distributed code tested on a laptop: each test runs on real rank processes, which share nothing."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from averaging import average_gradients, shard


@pytest.mark.ranks(1, 2, 4)
def test_gradients_are_averaged(rank: int, world_size: int) -> None:
    dist.init_process_group()
    model = torch.nn.Linear(3, 1, bias=False)
    model.weight.grad = torch.full((1, 3), float(rank))
    average_gradients(model)
    torch.testing.assert_close(model.weight.grad, torch.full((1, 3), (world_size - 1) / 2))


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("rows", [0, 1, 5, 6])
def test_every_row_goes_to_one_rank(rank: int, world_size: int, rows: int) -> None:
    dist.init_process_group()
    everything = torch.arange(rows * 2.0).reshape(rows, 2)
    mine = shard(everything if rank == 0 else everything[:0])
    assert len(mine) in (rows // world_size, rows // world_size + 1)
    gathered = [torch.empty(0)] * world_size
    dist.all_gather_object(gathered, mine)
    torch.testing.assert_close(torch.cat(gathered), everything)
