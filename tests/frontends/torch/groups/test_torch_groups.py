"""Initialising, subgroups and ranks through the torch frontend."""

from __future__ import annotations

import time
import zlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rank_numbers import check, numbers
from torch_world import world

import shim.frontends.paddle_3.distributed as paddle
import shim.frontends.torch.distributed as dist
from shim.core import groups
from shim.errors import ArgumentError, MismatchError, StateError, UnsupportedError


@pytest.mark.ranks(1, 3)
def test_the_world(rank: int, world_size: int) -> None:
    assert dist.is_available()
    assert not dist.is_initialized()
    assert dist.group.WORLD is None
    with world():
        assert dist.is_initialized()
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (rank, world_size, "gloo")
        everyone = dist.group.WORLD
        assert everyone is dist.GroupMember.WORLD
        assert (everyone.rank(), everyone.size(), everyone.group_desc) == (rank, world_size, "default_pg")
        assert dist.get_process_group_ranks(everyone) == list(range(world_size))
        assert dist.get_rank(everyone) == rank
        dist.all_reduce(np.ones(2), group=everyone)
    assert not dist.is_initialized()
    assert dist.group.WORLD is None


@pytest.mark.ranks(2)
def test_the_world_can_be_made_again(rank: int, world_size: int) -> None:
    for turn in range(5):
        with world():
            tensor = numbers(rank + turn, 3)
            dist.all_reduce(tensor)
            check("numpy", tensor, sum(numbers(other + turn, 3) for other in range(world_size)))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("backend", [None, "nccl", "MPI", "ucc", "xccl", "cpu:gloo,cuda:nccl", dist.Backend.GLOO])
def test_every_backend_is_the_one_engine(rank: int, world_size: int, backend: str | None) -> None:
    dist.init_process_group(backend, timeout=timedelta(seconds=20))
    try:
        assert dist.get_backend() == (backend or "undefined").lower()
        tensor = numbers(rank, 3)
        dist.all_reduce(tensor)
        check("numpy", tensor, sum(numbers(other, 3) for other in range(world_size)))
    finally:
        dist.destroy_process_group()


def torchs_tcp_store(rank: int, world_size: int, file: Path) -> Any:
    """Have rank 0 serve torch's own store at a free port, which it writes to *file*."""
    from torch.distributed import TCPStore

    if rank == 0:
        store = TCPStore("localhost", 0, world_size, is_master=True, wait_for_workers=False)
        file.with_suffix(".new").write_text(str(store.port))
        file.with_suffix(".new").rename(file)
        return store
    while not file.exists():
        time.sleep(0.01)
    return TCPStore("localhost", int(file.read_text()), world_size, is_master=False)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("scheme", ["tcp://localhost:{port}", "file://{path}", "tcp store", "file store"])
def test_meeting_at_an_address(rank: int, world_size: int, scheme: str, tmp_path: Path) -> None:
    if scheme == "file store":
        import torch.distributed

        where = {"store": torch.distributed.FileStore(str(tmp_path / "store"), world_size)}
    elif scheme == "tcp store":
        where = {"store": torchs_tcp_store(rank, world_size, tmp_path / "port")}
    else:  # a port is a name to us: nothing listens there
        port = 20000 + zlib.crc32(str(tmp_path).encode()) % 20000
        where = {"init_method": scheme.format(port=port, path=tmp_path / "meet")}
    dist.init_process_group("gloo", rank=world_size - 1 - rank, world_size=world_size, group_name="mine", **where)
    try:
        assert dist.get_rank() == world_size - 1 - rank
        assert dist.group.WORLD.group_name == "mine"
        dist.barrier()
    finally:
        dist.destroy_process_group()


@pytest.mark.ranks(1)
def test_what_initialisation_refuses() -> None:
    refusals = [
        (AssertionError, {"backend": "foo"}),
        (ValueError, {"backend": 3}),
        (ValueError, {"backend": "cpu:gloo:x"}),
        (ValueError, {"backend": "cpu:gloo,cpu:mpi"}),
        (UnsupportedError, {"backend": "fake"}),
        (AssertionError, {"store": object(), "init_method": "env://"}),
        (AssertionError, {"store": object()}),
        (TypeError, {"store": object(), "rank": 0, "world_size": 2}),
        (UnsupportedError, {"store": dist.HashStore(), "rank": 0, "world_size": 2}),
        (UnsupportedError, {"store": dist.PrefixStore("a", dist.HashStore()), "rank": 0, "world_size": 2}),
        (TypeError, {"init_method": 5}),
        (ValueError, {"init_method": "ftp://localhost:1"}),
        (ArgumentError, {"device_id": 0}),
        (ArgumentError, {"device_id": "cuda:0"}),
        (UnsupportedError, {"pg_options": object()}),
        (UnsupportedError, {"_ranks": [0]}),
        (TypeError, {"timeout": 5}),
        (ValueError, {"timeout": timedelta(0)}),
    ]
    for kind, arguments in refusals:
        with pytest.raises(kind):
            dist.init_process_group(**arguments)
        assert not dist.is_initialized()


@pytest.mark.ranks(2)
def test_initialising_twice_and_using_what_is_not_there(rank: int) -> None:
    for call in [dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier, dist.new_group]:
        with pytest.raises(ValueError) as caught:
            call()
        assert isinstance(caught.value, StateError)
    for function in [dist.all_reduce, dist.broadcast]:
        with pytest.raises(ValueError, match="init_process_group"):
            function(np.ones(2))
    with pytest.raises(AssertionError):
        dist.destroy_process_group()
    assert dist.get_rank(dist.GroupMember.NON_GROUP_MEMBER) == -1
    assert dist.destroy_process_group(dist.GroupMember.NON_GROUP_MEMBER) is None
    with world(), pytest.raises(ValueError, match="initialised already"):
        dist.init_process_group("gloo")


@pytest.mark.ranks(3)
def test_subgroups(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group([2, 0], group_desc="outer")
        if rank == 1:
            assert group == dist.GroupMember.NON_GROUP_MEMBER == -100
            assert (dist.get_rank(group), dist.get_world_size(group)) == (-1, -1)
            with pytest.raises(ValueError):
                dist.get_backend(group)
        else:
            assert (group.rank(), group.size(), group.group_desc) == (rank // 2, 2, "outer")
            assert dist.get_process_group_ranks(group) == [0, 2]
            assert [dist.get_group_rank(group, member) for member in (0, 2)] == [0, 1]
            assert [dist.get_global_rank(group, member) for member in (0, 1)] == [0, 2]
            with pytest.raises(ValueError):
                dist.get_group_rank(group, 1)
            with pytest.raises(ValueError):
                dist.get_global_rank(group, 2)
            for arguments in ({"src": 2}, {"group_src": 1}):
                tensor = numbers(rank, 3)
                dist.broadcast(tensor, group=group, **arguments)
                check("numpy", tensor, numbers(2, 3))
        dist.barrier()


@pytest.mark.ranks(3)
def test_outside_a_group_calls_warn_and_do_nothing(rank: int) -> None:
    with world():
        group = dist.new_group([0])
        if rank == 0:
            tensor = numbers(0, 2)
            dist.all_reduce(tensor, group=group)
            check("numpy", tensor, numbers(0, 2))
            return
        tensor, before = numbers(rank, 2), numbers(rank, 2)
        calls = {
            "all_reduce": lambda: dist.all_reduce(tensor, group=group),
            "all_reduce async": lambda: dist.all_reduce(tensor, group=group, async_op=True),
            "broadcast": lambda: dist.broadcast(tensor, 0, group),
            "all_gather": lambda: dist.all_gather([tensor], tensor, group),
            "all_gather_single": lambda: dist.all_gather_single(tensor, tensor, group),
            "gather": lambda: dist.gather(tensor, [tensor], 0, group),
            "scatter": lambda: dist.scatter(tensor, [tensor], 0, group),
            "reduce_scatter_single": lambda: dist.reduce_scatter_single(tensor, tensor, group=group),
            "all_to_all": lambda: dist.all_to_all([tensor], [tensor], group),
            "all_to_all_single": lambda: dist.all_to_all_single(tensor, tensor, group=group),
            "all_gather_object": lambda: dist.all_gather_object([None], 1, group),
            "barrier": lambda: dist.barrier(group),
            "send": lambda: dist.send(tensor, 0, group),
        }
        for name, call in calls.items():
            with pytest.warns(UserWarning, match=name.split()[0]):
                assert call() is None
        with pytest.warns(UserWarning, match="recv"):
            assert dist.recv(tensor, 0, group) == -1
        check("numpy", tensor, before)


@pytest.mark.ranks(3)
def test_members_alone_make_a_group_and_ranks_keep_their_order(rank: int) -> None:
    with world():
        group = dist.new_group([2, 1], use_local_synchronization=True, sort_ranks=False) if rank else None
        if rank:
            assert group.rank() == 2 - rank
            output = np.zeros((2, 2))
            dist.all_gather_single(output, numbers(rank, 2), group)
            check("numpy", output, np.stack([numbers(2, 2), numbers(1, 2)]))
            assert dist.new_group([rank], use_local_synchronization=True).size() == 1
        else:
            assert dist.new_group([2, 1], use_local_synchronization=True) is None
        dist.barrier()


@pytest.mark.ranks(2)
def test_what_new_group_refuses(rank: int) -> None:
    with world():
        refusals = [
            (ValueError, {"ranks": [0, 0]}),
            (ValueError, {"ranks": [0, 2]}),
            (ValueError, {"ranks": [-1]}),
            (ValueError, {"ranks": []}),
            (TypeError, {"ranks": 5}),
            (ValueError, {"ranks": ["0"]}),
            (AssertionError, {"backend": "foo"}),
            (TypeError, {"timeout": 5}),
            (UnsupportedError, {"pg_options": object()}),
            (ArgumentError, {"device_id": 1}),
        ]
        for kind, arguments in refusals:
            with pytest.raises(kind):
                dist.new_group(**arguments)
        group = dist.new_group(timeout=timedelta(seconds=9), backend="nccl", device_id="cpu")
        assert dist.get_backend(group) == "nccl"
        assert group.core.timeout == 9.0


@pytest.mark.ranks(3)
def test_a_group_refused_on_one_rank_is_refused_on_all(rank: int, world_size: int) -> None:
    """The next one is the same on all ranks, whatever was wrong."""
    with world():
        wrong = [{"ranks": [0, 9]}, {"timeout": 5}, {"pg_options": object()}, {"backend": "foo"}, {"ranks": "a"}]
        for arguments in wrong:
            if rank == 0:
                with pytest.raises((ValueError, TypeError, UnsupportedError, AssertionError)):
                    dist.new_group(**arguments)
            else:
                with pytest.raises(MismatchError, match=r"rank 0: refused: torch\.distributed\.new_group: "):
                    dist.new_group([0])
        group = dist.new_group(timeout=timedelta(seconds=15))
        tensor = numbers(rank, 3)
        dist.all_reduce(tensor, group=group)
        check("numpy", tensor, sum(numbers(other, 3) for other in range(world_size)))
        assert (group.group_name, dist.get_pg_count()) == ("1", 2)


def test_nothing_is_initialised_once_the_world_was_closed_from_elsewhere() -> None:
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    assert dist.get_pg_count() == 1
    groups.close_world()
    assert (dist.get_pg_count(), dist.is_initialized(), dist.group.WORLD) == (0, False, None)
    for function in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier):
        with pytest.raises((StateError, ValueError)):
            function()
    dist.destroy_process_group()  # forgets it


@pytest.mark.ranks(2)
def test_a_destroyed_group_is_refused_and_the_world_goes_on(rank: int) -> None:
    with world():
        group = dist.new_group()
        dist.barrier(group)
        dist.destroy_process_group(group)
        with pytest.raises(StateError):
            dist.barrier(group)
        with pytest.raises(ValueError):
            dist.destroy_process_group(group)
        dist.barrier()
        kept = dist.new_group()
    with pytest.raises(ValueError):
        dist.barrier(kept)


@pytest.mark.ranks(2)
def test_a_group_argument_that_is_no_group(rank: int) -> None:
    with world():
        for wrong in ("world", 7, [0, 1]):
            with pytest.raises(ValueError):
                dist.get_rank(wrong)
            with pytest.raises(ArgumentError):
                dist.barrier(wrong)
        dist.barrier()


def test_names_of_constants() -> None:
    assert dist.GroupMember.NON_GROUP_MEMBER == -100
    assert dist.distributed_c10d.default_pg_timeout == timedelta(minutes=30)
    assert [dist.Backend(name) for name in ("GLOO", "Nccl", "mine")] == ["gloo", "nccl", "mine"]
    members = dist.ReduceOp.RedOpType
    assert {op.name: op.value for op in members} == {
        name: number
        for number, name in enumerate(["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"])
    }
    assert str(dist.ReduceOp.SUM) == "RedOpType.SUM"
    assert dist.ReduceOp(dist.ReduceOp.MIN) == dist.ReduceOp.MIN
    with pytest.raises(TypeError):
        dist.ReduceOp(0)


@pytest.mark.ranks(2)
def test_a_world_that_another_closed_can_be_made_again(rank: int) -> None:
    dist.init_process_group("gloo")
    stale = dist.new_group()
    groups.close_group(dist.group.WORLD.core)
    assert not dist.is_initialized()
    with pytest.raises(ValueError):
        dist.barrier()
    with world():
        dist.barrier(dist.new_group())
        with pytest.raises(ValueError):
            dist.barrier(stale)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("end", ["shutdown", "abort"])
def test_ending_the_world_leaves_other_frontends_theirs(rank: int, world_size: int, end: str) -> None:
    paddle.init_parallel_env()
    try:
        theirs = paddle.new_group([0, 1])
        dist.init_process_group("gloo")
        everyone, subgroup = dist.group.WORLD, dist.new_group()
        getattr(everyone, end)()
        assert not dist.is_initialized()
        for group in (everyone, subgroup, None):
            with pytest.raises((ValueError, StateError)):
                dist.barrier(group)
        paddle.barrier()
        outputs: list = []
        paddle.all_gather_object(outputs, rank, theirs)
        assert outputs == list(range(world_size))
        dist.destroy_process_group()
        getattr(everyone, end)()
        with world():
            dist.barrier(dist.new_group())
            getattr(everyone, end)()  # of before
            dist.barrier()
        paddle.barrier(theirs)
    finally:
        paddle.destroy_process_group()


@pytest.mark.ranks(2)
def test_another_frontend_keeps_the_world(rank: int, world_size: int) -> None:
    paddle.init_parallel_env()
    try:
        assert not dist.is_initialized()
        with pytest.raises(UnsupportedError, match="timeout"):
            dist.init_process_group(timeout=timedelta(seconds=7))
        with world():
            subgroup = dist.new_group()
            tensor = numbers(rank, 3)
            dist.all_reduce(tensor, group=subgroup)
            check("numpy", tensor, sum(numbers(other, 3) for other in range(world_size)))
        assert not dist.is_initialized()
        with pytest.raises(ValueError):
            dist.get_rank()
        with pytest.raises(ValueError):
            dist.barrier(subgroup)
        paddle.barrier()
    finally:
        paddle.destroy_process_group()
