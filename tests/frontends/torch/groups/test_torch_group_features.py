"""What a program sets for a group and asks it about: timeouts, what serves it, and features that no group has here."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
import torch
from torch_world import assert_usable, world
from wrong_calls import assert_refused, named

import shim.frontends.torch.distributed as dist
from shim.errors import CollectiveTimeoutError, UnsupportedError

pytestmark = pytest.mark.newest

HOUR = timedelta(hours=1)


@pytest.mark.ranks(2)
def test_the_timeout_of_one_rank_in_one_group(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group()
        assert dist.set_timeout(HOUR) is None
        dist.set_timeout(timedelta(milliseconds=200), group)
        assert (dist.group.WORLD.core.timeout, group.core.timeout) == (3600.0, 0.2)
        begun = time.monotonic()
        if rank == 0:
            with pytest.raises(CollectiveTimeoutError):
                dist.all_reduce(np.ones(2), group=group)
            assert time.monotonic() - begun < 30
        assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_wrong_timeouts_and_groups(rank: int, world_size: int) -> None:
    with world():
        part = dist.new_group([0])
        for timeout, group, kind in (
            (3, None, TypeError),
            (None, None, TypeError),
            (timedelta(0), None, ValueError),
            (HOUR, "x", ValueError),
            *([(HOUR, part, ValueError)] if rank == 1 else []),
        ):
            with named(f"{timeout} {group}"):
                assert_refused(kind, None, dist.set_timeout, timeout, group)
        dist.destroy_process_group(part)
        assert rank or assert_refused(ValueError, "destroyed", dist.set_timeout, HOUR, part)


@pytest.mark.ranks(1)
def test_the_older_name_of_set_timeout_warns_and_sets_it(rank: int, world_size: int) -> None:
    with world():
        with pytest.warns(FutureWarning, match=r"torch 2.14 renamed .*_set_pg_timeout to .*\.set_timeout"):
            dist.distributed_c10d._set_pg_timeout(HOUR)
        assert dist.group.WORLD.core.timeout == 3600.0


@pytest.mark.ranks(2)
def test_a_work_tells_how_long_it_is_waited_for(rank: int, world_size: int) -> None:
    with world():
        dist.set_timeout(HOUR)
        work = dist.all_reduce(np.ones(2), async_op=True)
        assert work.timeout == HOUR
        work.wait()
        options = dist.AllreduceOptions()
        options.timeout = timedelta(seconds=40)
        work = dist.group.WORLD.allreduce([np.ones(2)], options)
        assert work.timeout == timedelta(seconds=40)
        work.wait()
        options = dist.AllreduceOptions()
        options.asyncOp = False
        assert dist.group.WORLD.allreduce([np.ones(2)], options).timeout == timedelta(0)
        with dist._coalescing_manager(async_ops=True) as manager:
            dist.all_gather_single(np.ones(4), np.ones(2))
        assert manager.works[0].timeout == HOUR
        manager.wait()


@pytest.mark.ranks(2)
def test_a_group_serves_itself(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group([0, 1], group_desc="pair")
        assert dist.get_backend_impl() is dist.group.WORLD
        assert dist.get_backend_impl(group) is group
        assert dist.get_backend_impl(group.group_name, torch.device("cpu")) is group
        assert group.get_backend(torch.device("cpu")) is group
        assert_refused(RuntimeError, "no backend for device", dist.get_backend_impl, group, torch.device("meta"))
        assert_refused(RuntimeError, "no backend for device", group.get_backend, torch.device("meta"))
        assert_refused(RuntimeError, "group_name", dist.get_backend_impl, "nobody's")
        assert_refused(ValueError, "a process group that this process is in", dist.get_backend_impl, -100)


@pytest.mark.ranks(1)
def test_no_group_has_windows_or_can_be_reconfigured(rank: int, world_size: int) -> None:
    with world():
        group: Any = dist.group.WORLD
        assert not group.supports_window
        assert not group.supports_reconfigure
        assert_refused(UnsupportedError, "isend", group.new_window)
        assert_refused(UnsupportedError, "got a Tensor", group.new_window, torch.ones(2))
        assert_refused(UnsupportedError, "shrink_group", group.get_reconfigure_handle)
        assert_refused(UnsupportedError, "shrink_group", group.reconfigure, "options")
        assert dist.distributed_c10d._world.pg_flight_recorder_hooks == {}


@pytest.mark.parametrize(
    "name", ["FlightRecorderHook", "HealthCheckHook", "NanCheckHook", "Window", "ReconfigureOptions"]
)
def test_what_belongs_to_torchs_own_groups_says_so(name: str) -> None:
    with pytest.raises(AttributeError, match=r"Register a function|Send with|Make a group"):
        getattr(dist.distributed_c10d, name)


@pytest.mark.ranks(1)
def test_a_world_that_could_be_reconfigured_is_refused(rank: int, world_size: int) -> None:
    told = assert_refused(UnsupportedError, "enable_reconfigure", dist.init_process_group, enable_reconfigure=True)
    assert "shim run --replace" in told
    assert not dist.is_initialized()
    dist.init_process_group("gloo", enable_reconfigure=False)
    dist.destroy_process_group()


def test_no_backend_is_registered_under_any_type() -> None:
    assert_refused(
        UnsupportedError,
        "_backend_type=7",
        dist.Backend.register_backend,
        "mine",
        print,
        devices="cpu",
        _backend_type=7,
    )


@pytest.mark.parametrize("kind", ["hash", "file", "tcp", "prefix"])
def test_a_clone_of_a_store_has_its_content(kind: str, tmp_path: Any) -> None:
    store = {
        "hash": dist.HashStore,
        "file": lambda: dist.FileStore(str(tmp_path / "store")),
        "tcp": lambda: dist.TCPStore("127.0.0.1", 0, 1, True),
        "prefix": lambda: dist.PrefixStore("mine", dist.HashStore()),
    }[kind]()
    store.set("before", "1")
    clone = store.clone()
    assert type(clone) is type(store)
    assert clone is not store
    clone.set("after", "2")
    assert (clone.get("before"), store.get("after")) == (b"1", b"2")
