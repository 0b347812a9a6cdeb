"""torch.utils.data.DistributedSampler, which splits a data set by what the world says."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import shim.frontends.torch.distributed as dist
from shim.frontends.torch._groups.sampler import DistributedSampler

DATA = TensorDataset(torch.arange(12))


@pytest.mark.ranks(3)
def test_each_rank_gets_its_part(rank: int, world_size: int) -> None:
    with pytest.raises(ValueError, match=r"torch\.utils\.data\.DistributedSampler: .*not initialised"):
        DistributedSampler(DATA)
    dist.init_process_group()
    assert list(DistributedSampler(DATA, shuffle=False)) == list(range(rank, 12, world_size))
    assert list(DistributedSampler(DATA, 4, 3, shuffle=False)) == [3, 7, 11]
    sampler = DistributedSampler(DATA)
    sampler.set_epoch(3)
    wanted = torch.utils.data.DistributedSampler(DATA, world_size, rank)
    wanted.set_epoch(3)
    loader = DataLoader(DATA, sampler=sampler)
    assert [int(number) for (number,) in loader] == list(wanted)


def test_it_is_torchs_with_the_same_signature() -> None:
    assert issubclass(DistributedSampler, torch.utils.data.DistributedSampler)
    theirs, ours = (
        inspect.signature(one).parameters for one in (torch.utils.data.DistributedSampler, DistributedSampler)
    )
    assert [(one.name, one.default) for one in ours.values()] == [(one.name, one.default) for one in theirs.values()]
