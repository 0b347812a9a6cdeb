"""Initialising, groups and ranks through the Paddle frontends."""

from __future__ import annotations

import importlib
from datetime import timedelta
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from paddle_world import VERSIONS, world
from rank_numbers import check, numbers

import shim.frontends.torch.distributed as torch_dist
from shim.errors import CollectiveTimeoutError, MismatchError, StateError, UnsupportedError


def test_the_unversioned_frontend_says_which_to_choose() -> None:
    for name in ("shim.frontends.paddle", "shim.frontends.paddle.distributed"):
        with pytest.raises(ImportError, match=r"paddle_3\.distributed.*paddle_2\.distributed"):
            importlib.import_module(name)


@pytest.mark.ranks(1, 3)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_world(rank: int, world_size: int, version: str) -> None:
    dist = VERSIONS[version]
    assert dist.is_available()
    assert not dist.is_initialized()
    assert (dist.get_rank(), dist.get_world_size()) == (rank, world_size)
    with world(version):
        assert dist.is_initialized()
        everyone = dist.init_parallel_env()
        assert everyone is dist.get_group() is dist.get_group(0) is dist.init_parallel_env()
        assert (everyone.id, everyone.rank, everyone.nranks, everyone.world_size) == (0, rank, world_size, world_size)
        assert (everyone.name, everyone.ranks) == ("_default_pg", list(range(world_size)))
        assert everyone.is_member()
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (rank, world_size, "GLOO")
        assert repr(everyone).startswith(f"rank: {rank}, nranks: {world_size}, id: 0, ranks: 0")
    assert not dist.is_initialized()


def met(dist: ModuleType, group: Any, rank: int) -> list:
    """Return what the members of *group* say of themselves in it."""
    said: list = []
    dist.all_gather_object(said, rank, group)
    return said


@pytest.mark.ranks(2)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_group_refused_on_one_rank_is_made_the_next_time(rank: int, version: str) -> None:
    with world(version) as dist:
        for wrong in ({"timeout": 5}, {"backend": "foo"}):
            if rank == 0:
                with pytest.raises((ValueError, TypeError, AssertionError)):
                    dist.new_group([0, 1], **wrong)
            else:
                with pytest.raises(CollectiveTimeoutError, match=r"'ranks_0_1#\d'"):
                    dist.new_group([0, 1], timeout=timedelta(seconds=0.2))
        group = dist.new_group([0, 1], timeout=timedelta(seconds=15))
        assert met(dist, group, rank) == [0, 1]


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_members_alone_make_a_group(rank: int, version: str) -> None:
    with world(version) as dist:
        if rank in (0, 2):
            assert met(dist, dist.new_group([0, 2]), rank) == [0, 2]
        dist.barrier()
        assert met(dist, dist.new_group(), rank) == [0, 1, 2]
        if rank == 1:  # it neither waits for the others nor is waited for
            assert not dist.new_group([0, 2]).is_member()
        dist.barrier()
        if rank != 1:
            assert met(dist, dist.new_group([2, 0]), rank) == [0, 2]
        dist.barrier()


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_ranks_make_their_groups_in_an_order_of_their_own(rank: int, version: str) -> None:
    orders = [[[0, 1], [0, 2], [0, 1]], [[0, 1], [1, 2], [0, 1]], [[0, 2], [0, 1], [1, 2]]]
    with world(version) as dist:
        for ranks, group in [(ranks, dist.new_group(ranks)) for ranks in orders[rank]]:
            assert group.is_member() == (rank in ranks)
            if group.is_member():
                assert met(dist, group, rank) == ranks


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
def test_ranks_of_torch_and_paddle_make_a_group_together(rank: int, version: str) -> None:
    """Torch's ranks must say that the members alone make it, as Paddle's do."""
    with world(version) as dist:
        if rank == 0:
            assert met(dist, dist.new_group([0, 1]), rank) == [0, 1]
        if rank == 1:
            torch_dist.init_process_group()
            group = torch_dist.new_group([0, 1], use_local_synchronization=True)
            said: list = [None, None]
            torch_dist.all_gather_object(said, rank, group)
            assert said == [0, 1]
        dist.barrier()


@pytest.mark.engine("shared_memory")  # the others do not look for circles
@pytest.mark.ranks(2)
def test_a_torch_rank_that_waits_for_the_whole_world_is_told(rank: int) -> None:
    with world("3") as dist:
        if rank == 0:
            with pytest.raises(MismatchError, match="cannot be made, because these ranks wait for each other"):
                dist.new_group([0, 1])
        else:
            torch_dist.init_process_group()
            with pytest.raises(MismatchError, match=r"rank 0: refused: (.|\n)*making a new group with all ranks"):
                torch_dist.new_group([0, 1])
        dist.barrier()


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
def test_subgroups(rank: int, world_size: int, version: str) -> None:
    with world(version) as dist:
        group = dist.new_group([2, 0], backend="nccl", timeout=timedelta(seconds=9))
        assert group.ranks == [0, 2]
        assert dist.get_group(group.id) is group
        assert group.nranks == 2
        if rank == 1:
            assert (group.rank, group.world_size, group.is_member(), group.get_group_rank(0)) == (-1, -1, False, -1)
            assert (dist.get_rank(group), dist.get_world_size(group)) == (-1, -1)
        else:
            assert (dist.get_rank(group), dist.get_world_size(group)) == (rank // 2, 2)
            assert [group.get_group_rank(member) for member in (0, 2)] == [0, 1]
            assert [group.get_global_rank(member) for member in (0, 1)] == [0, 2]
            with pytest.raises(ValueError):
                group.get_group_rank(1)
            assert dist.get_backend(group) == "NCCL"
            assert group._core.timeout == 9.0
            outputs: list = []
            dist.all_gather(outputs, numbers(rank, 2), group)
            check("numpy", np.stack(outputs), np.stack([numbers(0, 2), numbers(2, 2)]))
            dist.barrier(group)
        dist.barrier()
        everyone = dist.new_group()
        assert (everyone.id, everyone.ranks) == (11, list(range(world_size)))
        dist.barrier(everyone)


@pytest.mark.ranks(2)
def test_a_group_of_one_rank_works(rank: int) -> None:
    with world() as dist:
        mine, theirs = (dist.new_group([0]), dist.new_group([1]))[:: 1 - 2 * rank]
        assert (mine.rank, mine.world_size, mine.is_member()) == (0, 1, True)
        assert not theirs.is_member()
        tensor = numbers(rank, 3)
        dist.all_reduce(tensor, group=mine)
        check("numpy", tensor, numbers(rank, 3))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("version", VERSIONS)
def test_outside_a_group(rank: int, version: str) -> None:
    with world(version) as dist:
        group = dist.new_group([0])
        if rank == 0:
            return
        tensor, before = numbers(rank, 2), numbers(rank, 2)
        for call in (
            lambda: dist.all_reduce(tensor, group=group),
            lambda: dist.all_reduce(tensor, group=group, sync_op=False),
            lambda: dist.alltoall([tensor], [tensor], group),
            lambda: dist.alltoall_single(tensor, tensor, group=group),
            lambda: dist.broadcast(tensor, 0, group),
            lambda: dist.gather(tensor, [tensor], 0, group),
            lambda: dist.scatter(tensor, [tensor], 0, group),
            lambda: dist.send(tensor, 0, group),
            lambda: dist.recv(tensor, 0, group),
        ):
            with pytest.warns(UserWarning, match="does not belong"):
                assert call() is None
        with pytest.raises(RuntimeError, match="does not belong"):
            dist.all_gather([], tensor, group)
        assert dist.barrier(group) is None
        assert dist.wait(tensor, group) is None
        check("numpy", tensor, before)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("version", VERSIONS)
def test_calls_before_and_after_the_world(rank: int, version: str) -> None:
    dist = VERSIONS[version]

    def assert_not_initialised() -> None:
        for call in (
            lambda: dist.all_reduce(np.ones(2)),
            lambda: dist.all_gather([], np.ones(2)),
            lambda: dist.alltoall([], [np.ones(2)]),
            lambda: dist.alltoall_single(np.ones(2), np.ones(2)),
            dist.barrier,
            lambda: dist.wait(np.ones(2)),
            dist.get_backend,
            dist.destroy_process_group,
        ):
            with pytest.raises(RuntimeError, match="init_parallel_env") as caught:
                call()
            assert isinstance(caught.value, StateError)
        with pytest.raises(AssertionError):
            dist.new_group([0, 1])
        with pytest.warns(UserWarning, match="no group"):
            assert dist.get_group() is None

    assert_not_initialised()
    with world(version):
        group = dist.new_group()
        dist.barrier(group)
        dist.destroy_process_group(group)
        assert dist.is_initialized()
        with pytest.raises(RuntimeError):
            dist.barrier(group)
        with pytest.raises(AssertionError):
            dist.destroy_process_group(group)
        dist.barrier()
    assert_not_initialised()
    with world(version):
        dist.barrier()


@pytest.mark.ranks(2)
def test_what_cannot_be_honoured(rank: int) -> None:
    dist = VERSIONS["3"]
    with pytest.raises(UnsupportedError, match="paddle frontend's engine"):
        dist.init_parallel_env(nccl_config=object())
    with world():
        for kind, arguments in (
            (UnsupportedError, {"nccl_config": object()}),
            (UnsupportedError, {"nccl_comm_init_option": 1}),
            (ValueError, {"backend": "heter"}),
            (AssertionError, {"backend": "foo"}),
            (AssertionError, {"ranks": [0, 1, 1]}),
            (TypeError, {"timeout": 5}),
            (ValueError, {"ranks": [0, 0]}),
            (ValueError, {"ranks": [0, 7]}),
            (ValueError, {"ranks": []}),
            (TypeError, {"ranks": 3}),
        ):
            with pytest.raises(kind):
                dist.new_group(**arguments)
        dist.barrier(dist.new_group())


@pytest.mark.ranks(2)
def test_both_versions_see_one_world(rank: int) -> None:
    with world("2") as dist:
        assert VERSIONS["3"].is_initialized()
        assert VERSIONS["3"].init_parallel_env() is dist.get_group()


def test_numbers_of_reduce_ops() -> None:
    op = VERSIONS["3"].ReduceOp
    assert (op.SUM, op.MAX, op.MIN, op.PROD, op.AVG) == (0, 1, 2, 3, 4)
