"""What the notes claim of torch itself, tried with the installed torch in a gloo group of one rank."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist


@pytest.fixture(autouse=True)
def gloo_alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_complex_parts_into_integers_raise_value_error():
    output = list(torch.empty([1], dtype=torch.int64).chunk(1))
    with pytest.raises(ValueError, match="different dtypes"):
        dist.all_to_all(output, [torch.tensor([1 + 1j], dtype=torch.cfloat)])


def test_gloo_refuses_the_stacked_output_and_takes_the_concatenated_one():
    with pytest.raises(RuntimeError, match="invalid tensor size"):
        dist.all_gather_single(torch.empty([1, 2]), torch.ones(2))
    output = torch.empty([2])
    dist.all_gather_single(output, torch.ones(2))
    assert output.tolist() == [1, 1]
