"""What torch code asks about backends, the launcher's settings and debugging, and what torch's internals ask about tensors."""

from __future__ import annotations

import pdb
import warnings

import numpy as np
import pytest
import torch
from torch_world import world

import shim.frontends.torch.distributed as dist
from shim.errors import UnsupportedError
from shim.frontends.torch.distributed import distributed_c10d as c10d


def test_backends_and_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shim.frontends.torch._groups.backends.serves_devices", lambda _kind: False)
    assert [dist.is_backend_available(name) for name in ("gloo", "GLOO", "cpu:gloo", "nccl", "cpu:gloo,cuda:nccl")] == [
        *(True, True, True),
        *(False, False),
    ]
    assert [dist.is_backend_available(name) for name in ("fake", "undefined", "foo", "")] == [False] * 4
    monkeypatch.setattr("shim.frontends.torch._groups.backends.serves_devices", lambda kind: kind == "cuda")
    assert dist.is_nccl_available()
    assert dist.is_backend_available("cpu:gloo,cuda:nccl")
    monkeypatch.undo()
    assert dist.is_gloo_available()
    others = (dist.is_xccl_available, dist.is_mpi_available, dist.is_ucc_available)
    assert [available() for available in others] == [False] * 3
    assert [dist.get_default_backend_for_device(device) for device in ("cpu", "cuda:1", "xpu", "mps")] == [
        *("gloo", "nccl"),
        *("xccl", "gloo"),
    ]
    for wrong, kind in (("meta", ValueError), ("foo", ValueError), (None, TypeError), (0, TypeError)):
        with pytest.raises(kind):
            dist.get_default_backend_for_device(wrong)
    with pytest.warns(UserWarning, match="'foo' are not known"):
        assert str(dist.BackendConfig("foo")) == "cpu:foo,cuda:foo,xpu:foo"
    with pytest.raises(ValueError, match="name each device once"):
        dist.BackendConfig("cpu:gloo,cpu:mpi")
    with pytest.raises(UnsupportedError, match="register_backend"):
        dist.Backend.register_backend("mine", print)


def test_what_the_launcher_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOCAL_RANK", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    assert not dist.is_torchelastic_launched()
    assert dist.get_node_local_rank(3) == 3
    with pytest.raises(RuntimeError, match="fallback_rank"):
        dist.get_node_local_rank()
    monkeypatch.setenv("LOCAL_RANK", "2")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert dist.get_node_local_rank(3) == 2
    assert dist.is_torchelastic_launched()
    monkeypatch.setenv("LOCAL_RANK", "two")
    with pytest.raises(ValueError, match="LOCAL_RANK"):
        dist.get_node_local_rank()


def test_the_debug_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCH_DISTRIBUTED_DEBUG", raising=False)
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() is dist.DebugLevel.OFF
    dist.set_debug_level(dist.DebugLevel.INFO)
    assert dist.get_debug_level() is dist.DebugLevel(1)
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    dist.set_debug_level_from_env()
    assert (dist.get_debug_level().name, int(dist.get_debug_level())) == ("DETAIL", 2)
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "loud")
    with pytest.raises(ValueError, match="OFF, INFO or DETAIL, got loud"):
        dist.set_debug_level_from_env()
    with pytest.raises(TypeError):
        dist.set_debug_level(1)
    monkeypatch.delenv("TORCH_DISTRIBUTED_DEBUG")
    dist.set_debug_level_from_env()


@pytest.mark.ranks(1, 2)
def test_one_rank_stops_at_a_breakpoint(rank: int, world_size: int) -> None:
    stopped: list[str] = []
    with world(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdb.Pdb, "set_trace", lambda self, frame=None: stopped.append("here"))
        patch.setattr(pdb.Pdb, "message", lambda self, text: stopped.append(text.split()[-1]))
        for _ in range(3):
            dist.breakpoint(world_size - 1, skip=1, timeout_s=20)
        assert len(stopped) == (4 if rank == world_size - 1 else 0)
        assert all(one == "here" or one.partition(":")[0].endswith("settings.py") for one in stopped)
        dist.breakpoint(timeout_s=None)
        if world_size > 1 and rank == 0:
            with pytest.raises(dist.DistStoreError, match="2 ranks must come"):
                dist.breakpoint(timeout_s=0.05)
        dist.barrier()


def test_a_profiler_shows_the_name_of_communication() -> None:
    activities = [torch.profiler.ProfilerActivity.CPU]
    with world(), torch.profiler.profile(activities=activities) as profile, dist.record_comm("my exchange"):
        dist.all_reduce(np.ones(3))
    assert "my exchange" in [event.key for event in profile.key_averages()]


def test_names_of_groups_are_text() -> None:
    assert dist.GroupName("x") == "x"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dist.BackendConfig(dist.Backend.UNDEFINED).get_device_backend_map() == {"cpu": "gloo"}


def test_what_is_asked_about_tensors() -> None:
    for tensor in (torch.ones(2), np.ones(2), bytearray(3)):
        c10d._check_single_tensor(tensor, "tensor")
    c10d._check_tensor_list([torch.ones(2), np.ones(2)], "tensors")
    for wrong in (5, [torch.ones(2)], "text", None):
        with pytest.raises(TypeError, match="mine must be one tensor"):
            c10d._check_single_tensor(wrong, "mine")
    for wrong in ((torch.ones(2),), torch.ones(2), [torch.ones(2), 5]):
        with pytest.raises(TypeError, match=r"mine(\[1\])? must be"):
            c10d._check_tensor_list(wrong, "mine")
    c10d._ensure_all_tensors_same_dtype(torch.ones(2), [torch.zeros(1), torch.zeros(2, dtype=torch.complex64)])
    with pytest.raises(ValueError, match="float32, float64"):
        c10d._ensure_all_tensors_same_dtype([torch.ones(2)], torch.ones(2, dtype=torch.float64))
    assert c10d._is_fp8(torch.ones(2).to(torch.float8_e5m2))
    assert not c10d._is_fp8(torch.ones(2))


def test_objects_in_tensors() -> None:
    with world():
        packed, size = c10d._object_to_tensor({"a": [1, 2]}, "cpu", dist.group.WORLD)
        theirs, their_size = torch.distributed.distributed_c10d._object_to_tensor({"a": [1, 2]}, "cpu", None)
        assert (packed.dtype, size.dtype, size.shape) == (theirs.dtype, their_size.dtype, their_size.shape)
        assert packed.numel() == size.item()
        longer = torch.cat([packed, torch.zeros(9, dtype=torch.uint8)])
        assert c10d._tensor_to_object(longer, size, None) == {"a": [1, 2]}
        assert c10d._tensor_to_object(theirs, their_size, None) == {"a": [1, 2]}
        with pytest.raises(TypeError, match="obj must be picklable"):
            c10d._object_to_tensor(lambda: None, "cpu", None)
        with pytest.raises(UnsupportedError, match="device"):
            c10d._object_to_tensor(1, "cuda", None)
