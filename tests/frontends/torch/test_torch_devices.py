"""Devices that torch code names, with an accelerator that is made up: no machine has to have one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from torch_world import world

import shim.frontends.torch.distributed as dist
from shim.frontends.torch.distributed import distributed_c10d as c10d

torch: Any = pytest.importorskip("torch")


def with_two_devices(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have torch seem to have two; return a list of those whose current stream is waited for."""
    found: list[str] = []

    class Stream:
        def __init__(self, device: Any) -> None:
            self.device = device

        def synchronize(self) -> None:
            found.append(str(self.device))

    def current_stream(device: Any = None) -> Stream:
        return Stream("current" if device is None else device)

    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    monkeypatch.setattr(torch.accelerator, "current_stream", current_stream)
    return found


@pytest.mark.ranks(2)
def test_a_barrier_waits_for_its_device(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = with_two_devices(monkeypatch)
    with world():
        dist.barrier()
        assert waits == []
        dist.barrier(device_ids=[rank])
        dist.barrier(async_op=True, device_ids=[rank]).wait()
        assert waits == [str(rank)] * 2
        options = dist.distributed_c10d.BarrierOptions()
        options.device = torch.device("cuda", rank)
        dist.group.WORLD.barrier(options).wait()
        assert waits[2:] == [f"cuda:{rank}"]
        dist.barrier(dist.new_group(backend="cuda:nccl"))
        dist.barrier(dist.new_group(backend="nccl"))
        dist.barrier(dist.new_group(backend="cpu:gloo,cuda:nccl"))
        assert waits[3:] == ["current"] * 2


@pytest.mark.ranks(2)
@pytest.mark.parametrize("is_number", [True, False])
def test_a_group_is_bound_to_a_device(rank: int, monkeypatch: pytest.MonkeyPatch, is_number: bool) -> None:
    waits = with_two_devices(monkeypatch)
    mine = torch.device("cuda", rank)
    dist.init_process_group(device_id=rank if is_number else mine)
    try:
        assert (dist.get_backend(), dist.group.WORLD.bound_device_id) == ("nccl", mine)
        part = dist.new_group()
        split = dist.split_group(None, [[0, 1]], timedelta(seconds=20))
        assert [group.bound_device_id for group in (part, split)] == [mine, mine]
        for group in (None, part, split):
            dist.barrier(group)
        assert waits == [f"cuda:{rank}"] * 3
        with pytest.raises(AssertionError, match="device_id must be the world's"):
            dist.new_group(device_id=torch.device("cuda", 1 - rank))
        assert part._device_types == [torch.device("cpu"), torch.device("cuda")]
        assert part._get_backend("cuda:1") is part
        assert c10d._device_capability() == ["cpu", "cuda"]
    finally:
        dist.destroy_process_group()


@pytest.mark.ranks(2)
def test_objects_may_be_said_to_come_from_the_device(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with_two_devices(monkeypatch)
    objects = [rank]
    with world():
        dist.broadcast_object_list(objects, 1, device=torch.device("cuda", rank))
        assert objects == [1]
        with pytest.raises(NotImplementedError, match="device must be None or the CPU"):
            dist.send_object_list(objects, 1 - rank, device=torch.device("xpu", 0))


@pytest.mark.parametrize("device", [2, -1, "cuda", "cuda:2", "xpu:0", "nothing"])
def test_devices_that_are_not_there(monkeypatch: pytest.MonkeyPatch, device: Any) -> None:
    with_two_devices(monkeypatch)
    wrong = device if isinstance(device, int) or device == "nothing" else torch.device(device)
    with pytest.raises(ValueError, match=r"init_process_group: device_id must be .*2 devices cuda:0, \.\.\., got"):
        dist.init_process_group(device_id=wrong)


@pytest.mark.parametrize("device", [0, "cuda:0"])
def test_a_device_where_torch_has_none(device: Any) -> None:
    wrong = device if isinstance(device, int) else torch.device(device)
    with pytest.raises(ValueError, match="device_id must be None or the CPU where torch has no accelerator"):
        dist.init_process_group(device_id=wrong)
