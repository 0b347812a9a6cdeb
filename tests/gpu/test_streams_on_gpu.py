"""NCCL's operations are ordered on torch's streams, and nobody waits for them."""

from __future__ import annotations

import time

import pytest

import shim
import shim.frontends.torch.distributed as dist

pytestmark = pytest.mark.gpu
LONG = 4_000_000_000  # cycles: seconds


@pytest.mark.ranks(1)
@pytest.mark.parametrize("async_op", [False, True])
def test_a_call_is_ordered_on_the_current_stream(rank: int, async_op: bool) -> None:
    import torch

    dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
    try:
        tensor = torch.ones(1 << 20, device="cuda")
        gathered = [torch.zeros_like(tensor)]
        dist.all_gather(gathered, tensor)  # connects the ranks
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()) as _:
            stream = torch.cuda.current_stream()
            torch.cuda._sleep(LONG)
            tensor.fill_(5.0)
            began = time.monotonic()
            work = dist.all_gather(gathered, tensor, async_op=async_op)
            if work is not None:
                work.wait()
                assert not work.is_completed()
            doubled = gathered[0] * 2
            assert time.monotonic() - began < 0.5
            assert not stream.query()
            dist.barrier()
            assert stream.query()
        assert torch.all(doubled == 10.0)
        assert "engine nccl, NCCL " in shim.explain()
    finally:
        dist.destroy_process_group()


@pytest.mark.ranks(1)
def test_memory_is_freed_with_the_group(rank: int) -> None:
    import torch

    tensor = torch.ones(1 << 20, device="cuda")
    free = []
    for _ in range(4):
        dist.init_process_group("nccl")
        dist.all_reduce(tensor)
        dist.all_reduce(tensor, async_op=True).wait()
        dist.destroy_process_group()
        torch.cuda.synchronize()
        free.append(torch.cuda.mem_get_info()[0])
    assert free[-1] >= free[1] - (8 << 20), f"the GPU's free memory shrinks: {free}"
