"""What torch's internals and the frameworks above it ask about groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rank_numbers import check, numbers
from torch_world import world

import shim.frontends.torch.distributed as dist
from shim.errors import ArgumentError, CollectiveTimeoutError, StateError, UnsupportedError
from shim.frontends.torch.distributed import distributed_c10d as c10d

OUTSIDE = dist.GroupMember.NON_GROUP_MEMBER
SOON = timedelta(seconds=15)  # within which ranks that agree meet


def assert_sum(group: Any, rank: int, members: Sequence[int]) -> None:
    """Every member sums over *members*, which are the group's."""
    tensor = numbers(rank, 3)
    dist.all_reduce(tensor, group=group)
    check("numpy", tensor, sum(numbers(other, 3) for other in members))


@pytest.mark.ranks(1, 3)
def test_names_sizes_and_tables(rank: int, world_size: int) -> None:
    assert c10d._World().default_pg is None
    assert dist.get_pg_count() == 0
    with world():
        everyone = dist.group.WORLD
        assert (everyone.group_name, dist.get_pg_count()) == ("0", 1)
        group = dist.new_group(
            [world_size - 1, 0][: min(2, world_size)], backend="cpu:gloo,cuda:nccl", group_desc="ends"
        )
        assert dist.get_pg_count() == 2
        local = dist.new_group([rank], use_local_synchronization=True)
        assert dist.get_pg_count() == c10d._world.group_count == 2
        assert c10d._get_process_group_name(local) == local.group_name not in ("0", "1", "2")
        there = [everyone, local] if group == OUTSIDE else [everyone, group, local]
        assert list(c10d._world.pg_names) == list(c10d._world.pg_map) == there
        assert [c10d._resolve_process_group(pg.group_name) for pg in there] == there
        assert [c10d._get_group_size_by_name(pg.group_name) for pg in there] == [pg.size() for pg in there]
        assert c10d._get_group_size_by_name(everyone) == c10d._get_group_size(None) == world_size
        assert c10d._world.pg_group_ranks[everyone] == {other: other for other in range(world_size)}
        assert c10d._world.pg_backend_config[everyone] == dist.get_backend_config() == "cpu:gloo,cuda:gloo"
        assert {backend for backend, _ in c10d._world.pg_map.values()} <= {"gloo", "cpu:gloo,cuda:nccl"}
        if group != OUTSIDE:
            assert (group.group_name, group.group_desc) == ("1", "ends")
            assert dist.get_backend_config(group) == "cpu:gloo,cuda:nccl"
        told = c10d._world.pg_config_info
        assert told[0] == {
            "pg_name": "0",
            "pg_desc": "default_pg",
            "backend_config": "cpu:gloo,cuda:gloo",
            "ranks": [],
            "group_size": world_size,
            "group_count": 2,
        }
        assert told[-1]["ranks"] == ([] if world_size == 1 else [rank])
        with pytest.raises(TypeError):
            c10d._world.pg_names[everyone] = "mine"  # type: ignore[index]  # they are to be read
        assert c10d._get_process_group_name(3) == "None"
        with pytest.raises(RuntimeError, match="'nope'"):
            c10d._resolve_process_group("nope")
    assert dist.get_pg_count() == 0


@pytest.mark.ranks(3)
def test_groups_are_found_by_tag_and_ranks(rank: int) -> None:
    with world():
        everyone = dist.group.WORLD
        tagged = c10d._new_group_with_tag([0, 1, 2], pg_tag="mine")
        plain = dist.new_group([1, 2])
        assert c10d._find_pg_by_ranks_and_tag("", [2, 1, 0]) is everyone
        assert c10d._find_pg_by_ranks_and_tag("mine", [0, 1, 2]) is tagged
        assert c10d._find_pg_by_ranks_and_tag("user:mine", [0, 1, 2]) is tagged
        assert c10d._find_pg_by_ranks_and_tag("ptd:0", [0, 1, 2]) is everyone
        assert c10d._find_pg_by_ranks_and_tag("", [1, 2]) is (plain if rank else None)
        assert c10d._find_pg_by_ranks_and_tag("other", [0, 1, 2]) is None
        assert c10d._new_group_with_tag([0, 1, 2], pg_tag="mine") is tagged
        assert c10d._find_or_create_pg_by_ranks_and_tag("mine", [0, 1, 2], 3) is tagged
        assert c10d._world.tags_to_pg["user:mine"] == [tagged]
        assert c10d._world.pg_to_tag[tagged] == "user:mine"
        assert everyone in c10d._world.tags_to_pg[""]
        made = c10d._find_or_create_pg_by_ranks_and_tag("new", [2, 1, 0], 3)
        assert dist.get_process_group_ranks(made) == [0, 1, 2]
        dist.barrier(made)
        with pytest.raises(ValueError, match="tag must not be empty"):
            c10d._find_or_create_pg_by_ranks_and_tag("", [rank], 1)
        with pytest.raises(ValueError, match="stride"):
            c10d._find_or_create_pg_by_ranks_and_tag("new", [0, 1, 2], 2)
        with pytest.raises(AssertionError, match="include the caller's own"):
            c10d._find_or_create_pg_by_ranks_and_tag("new", [(rank + 1) % 3], 1)


@pytest.mark.ranks(3)
def test_a_group_that_members_find_by_its_tag_counts_on_every_rank(rank: int, world_size: int) -> None:
    with world():
        made = [c10d._new_group_with_tag([0, 1], pg_tag="mine") for _ in range(2)]
        assert made[0] is made[1]
        assert made == [OUTSIDE] * 2 or rank < 2
        assert_sum(dist.new_group([2, 1, 0], timeout=SOON), rank, range(world_size))
        assert dist.get_pg_count() == 4


@pytest.mark.ranks(4)
def test_parts_with_a_tag_are_made_by_their_members(rank: int, world_size: int) -> None:
    with world():
        mine = [0, 2] if rank in (0, 2) else [1, 3]
        part = c10d._find_or_create_pg_by_ranks_and_tag("mine", [2, 0, 1, 3], 2)
        assert_sum(part, rank, mine)
        assert c10d._find_or_create_pg_by_ranks_and_tag("mine", [0, 2, 3, 1], 2) is part
        if rank in (0, 2):  # one part is there already, the others make theirs
            c10d._new_group_with_tag([2, 0], pg_tag="other", use_local_synchronization=True)
        assert_sum(c10d._find_or_create_pg_by_ranks_and_tag("other", [0, 2, 1, 3], 2), rank, mine)
        assert_sum(dist.new_group(timeout=SOON), rank, range(world_size))


@pytest.mark.ranks(3)
def test_ranks_in_either_words(rank: int) -> None:
    with world():
        group = dist.new_group([2, 0])
        if rank == 1:
            assert c10d._rank_not_in_group(group)
            return
        assert c10d._canonicalize_group_rank(group, 2) == 1
        assert c10d._canonicalize_group_rank(group, group_rank=1) == 1
        assert c10d._canonicalize_group_rank(group, 2, return_global=True) == 2
        assert c10d._canonicalize_group_rank(group, None, 1, True) == 2
        with pytest.warns(FutureWarning, match="get_global_rank"):
            assert c10d._get_global_rank(group, 1) == 2
        for wrong in ((), (0, 0), (1,), (None, 2)):
            with pytest.raises(ValueError):
                c10d._canonicalize_group_rank(group, *wrong)


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:torch 2.14 renamed:FutureWarning")
def test_a_group_tells_about_itself(rank: int) -> None:
    with world():
        group = dist.new_group(timeout=timedelta(seconds=20))
        assert (group.name(), group._get_backend_name(), group.bound_device_id) == ("gloo", "gloo", None)
        assert group._device_types == [torch.device("cpu")]
        assert c10d._device_capability(group) == ["cpu"]
        assert c10d._get_object_coll_device(group) == "cpu"
        assert c10d._get_pg_default_device(group) == torch.device("cpu")
        assert group._get_backend(torch.device("cpu")) is group._get_backend("cpu:0") is group
        assert (group._has_hooks(), group.use_pg_for_symm_mem_rendezvous, group._wait_for_pending_works()) == (
            False,
            False,
            None,
        )
        assert group._id() != dist.group.WORLD._id()
        kinds = dist.ProcessGroup.BackendType
        assert {kind.name: int(kind) for kind in kinds} == {
            "UNDEFINED": 0,
            "GLOO": 1,
            "NCCL": 2,
            "UCC": 3,
            "MPI": 4,
            "XCCL": 5,
            "CUSTOM": 6,
        }
        assert group.NCCL is kinds.NCCL
        group._set_group_name("mine")
        group._set_group_desc("ours")
        assert (c10d._resolve_process_group("mine"), group.group_desc) == (group, "ours")
        group.set_timeout(timedelta(seconds=20))
        c10d._set_pg_timeout(timedelta(seconds=20), group)
        c10d._set_pg_timeout(dist.distributed_c10d.default_pg_timeout)
        refusals: list[Callable[[], Any]] = [
            lambda: group._get_backend(torch.device("meta")),
            lambda: group.boxed(),
            lambda: dist.ProcessGroup.unbox(object()),
            lambda: group.merge_remote_group(dist.HashStore(), 2),
        ]
        for refusal in refusals:
            with pytest.raises(UnsupportedError, match=r"torch\.distributed\.\w+"):
                refusal()
        for wrong, kind in ((5, TypeError), (timedelta(0), ValueError)):
            with pytest.raises(kind):
                group.set_timeout(wrong)
        with pytest.raises(ValueError):
            c10d._set_pg_timeout(timedelta(seconds=5), OUTSIDE)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("end", ["shutdown", "abort"])
def test_a_group_is_ended_by_its_method(rank: int, end: str) -> None:
    with world():
        group = dist.new_group()
        dist.barrier(group)
        getattr(group, end)()
        assert dist.get_rank(group) == rank
        with pytest.raises(StateError, match="destroyed"):
            dist.barrier(group)
        dist.destroy_process_group(group)
        with pytest.raises(ArgumentError):
            dist.destroy_process_group(group)
        other = dist.new_group()
        c10d._abort_process_group(other)
        with pytest.raises(ArgumentError):
            c10d._abort_process_group(other)
        assert c10d._abort_process_group(OUTSIDE) is None
        dist.barrier()
        getattr(dist.group.WORLD or pytest.fail("no world"), end)()
        assert not dist.is_initialized()
    with pytest.raises(AssertionError):
        c10d._abort_process_group()
    dist.init_process_group("gloo")
    dist.barrier()
    c10d._abort_process_group()
    assert not dist.is_initialized()


@pytest.mark.ranks(3)
def test_a_gloo_group_stands_alone(rank: int, world_size: int, tmp_path: Path) -> None:
    store = dist.FileStore(str(tmp_path / "store"), world_size)
    options = dist.ProcessGroupGloo.Options()
    options._timeout = timedelta(seconds=20)
    for third in (options, timedelta(seconds=20)):
        group = dist.ProcessGroupGloo(store, rank, world_size, third)
        assert (group.rank(), group.size(), group.name(), group.core.timeout) == (rank, world_size, "gloo", 20.0)
        assert group.options._timeout == timedelta(seconds=20)
        assert not dist.is_initialized()
        tensor = numbers(rank, 3)
        dist.all_reduce(tensor, group=group)
        check("numpy", tensor, sum(numbers(other, 3) for other in range(world_size)))
        assert (dist.get_rank(group), dist.get_world_size(group), dist.get_backend(group)) == (rank, world_size, "gloo")
        assert dist.get_process_group_ranks(group) == list(range(world_size))
        assert dist.get_global_rank(group, 1) == dist.get_group_rank(group, 1) == 1
        assert group.get_group_store() is c10d._get_process_group_store(group) is store
        dist.monitored_barrier(group, timedelta(seconds=20))
        group.monitored_barrier()
        following, came = numbers(rank, 3), np.zeros(3)
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, following, (rank + 1) % world_size, group),
                dist.P2POp(dist.irecv, came, (rank - 1) % world_size, group),
            ]
        )
        for work in works:
            work.wait()
        check("numpy", came, numbers((rank - 1) % world_size, 3))
        for divide, arguments in (
            (dist.split_group, (group, [[0]])),
            (group.split_group, ([0],)),
            (dist.new_subgroups, (1, group)),
            (dist.shrink_group, ([1], group)),
        ):
            with pytest.raises(UnsupportedError, match="of the world's ranks alone"):
                divide(*arguments)
        dist.barrier(group)
        (dist.destroy_process_group if third is options else dist.ProcessGroup.shutdown)(group)
        with pytest.raises(ValueError, match="group must be a process group that was not destroyed"):
            dist.get_rank(group)
    lone = dist.ProcessGroupGloo(dist.HashStore(), 0, 1, timeout=timedelta(seconds=9))
    assert (lone.size(), lone.core.timeout) == (1, 9.0)
    assert (lone.supports_coalescing, lone.supports_splitting, lone.supports_shrinking) == (True, False, False)
    assert not lone.supports_time_estimate
    assert not lone.supports_tensor_alloc("cpu")
    device = dist.ProcessGroupGloo.create_device("localhost")
    assert type(device) is type(dist.ProcessGroupGloo.create_default_device()) is dist.ProcessGroupGloo.Device
    lone.eager_connect_single_device("cpu")
    lone.setUsePgForSymmMemRendezvous(False)
    refusals: list[Callable[[], Any]] = [
        lambda: dist.ProcessGroupGloo(dist.HashStore(), 0, 2),
        lambda: dist.ProcessGroupGloo.create_device("elsewhere"),
        lambda: dist.ProcessGroupGloo.create_device(interface="eth0"),
        lambda: dist.ProcessGroupGloo.create_default_device(True),
        lambda: lone.mem_allocator,
        lambda: lone.allocate_tensor(1, dtype=None, device="cpu"),
        lone.memory_stats,
        lambda: lone.shrink([0]),
        lambda: lone.setUsePgForSymmMemRendezvous(True),
        lone.suspend,
        lone.resume,
    ]
    for refusal in refusals:
        with pytest.raises(UnsupportedError):
            refusal()
    with pytest.raises(ValueError):
        lone.eager_connect_single_device("cuda")
    store.barrier("end", world_size)


def test_the_options_of_a_gloo_group() -> None:
    def options(**fields: Any) -> Any:
        made = dist.ProcessGroupGloo.Options()
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    given = options(group_name="mine", _devices=[dist.ProcessGroupGloo.create_device()])
    lone = dist.ProcessGroupGloo(dist.HashStore(), 0, 1, given)
    assert lone.options is given
    assert lone.group_name == "mine"
    assert (lone.size(), lone.core.timeout) == (1, 1800.0)
    for wrong in (options(_threads=3), options(_devices=["eth0"])):
        with pytest.raises(UnsupportedError, match="ProcessGroupGloo"):
            dist.ProcessGroupGloo(dist.HashStore(), 0, 1, wrong)
    with pytest.raises(TypeError, match="timeout must not be given beside options"):
        dist.ProcessGroupGloo(dist.HashStore(), 0, 1, options(), timeout=timedelta(seconds=9))


@pytest.mark.parametrize("module", ["", ".distributed_c10d"])
def test_names_that_are_not_here_say_why(module: str) -> None:
    """Of torch's own: as AttributeError, so that getattr with a default works, and as ImportError from an import."""
    import importlib

    place = f"shim.frontends.torch.distributed{module}"
    found = importlib.import_module(place)
    for name in ("DeviceMesh", "init_device_mesh", "Reducer", "ProcessGroupNCCL", "fsdp", "_get_default_timeout"):
        assert not hasattr(found, name)
        with pytest.raises(AttributeError, match=r"Import shim\.torch_backend") as asked:
            getattr(found, name)
        assert isinstance(asked.value, UnsupportedError)
        with pytest.raises(ImportError, match=r"Import shim\.torch_backend") as imported:
            exec(f"from {place} import {name}")
        assert isinstance(imported.value, UnsupportedError)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        found.nothing  # noqa: B018  # asking for it is the test
    assert found._rank_not_in_group(dist.GroupMember.NON_GROUP_MEMBER)


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:torch 2.14 renamed:FutureWarning")
@pytest.mark.parametrize("given", [timedelta(milliseconds=200), 0.2])
def test_another_timeout_holds_from_the_next_wait_on(rank: int, given: Any) -> None:
    with world():
        part = dist.new_group([0, 1], timeout=timedelta(seconds=60))
        other = dist.new_group([0, 1], timeout=timedelta(seconds=60))
        c10d._set_pg_timeout(given, part)
        other.set_timeout(timedelta(seconds=61))
        if rank == 0:
            begin = time.monotonic()
            with pytest.raises(CollectiveTimeoutError, match=r"made no progress for 0\.2 s"):
                dist.barrier(part)
            assert time.monotonic() - begin < 30
        dist.barrier()
        dist.barrier(other)
