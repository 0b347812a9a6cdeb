"""What groups tell, how they are shut down and restarted, and where warnings to processes outside them point."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from paddle_world import VERSIONS, world
from rank_numbers import check, numbers
from wrong_calls import assert_refused

from shim.errors import StateError, UnsupportedError
from shim.frontends.paddle_2.distributed import collective as collective_2
from shim.frontends.paddle_2.distributed.communication import group as group_2
from shim.frontends.paddle_3.distributed import collective as collective_3
from shim.frontends.paddle_3.distributed.communication import group as group_3

GROUP_MODULES = {"2": group_2, "3": group_3}
COLLECTIVE_MODULES = {"2": collective_2, "3": collective_3}


@pytest.mark.ranks(4)
@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_group_tells(rank: int, version: str) -> None:
    module = GROUP_MODULES[version]
    with world(version) as dist:
        group = dist.new_group([3, 1])
        assert isinstance(group, module.Group)
        assert (group.id, group.name, group.ranks, group.nranks) == (10, "_default_pg10", [1, 3], 2)
        assert not module._is_global_group(group)
        assert module._is_global_group(module._get_global_group())
        assert module._get_global_group() is COLLECTIVE_MODULES[version]._get_default_group() is dist.get_group()
        if rank in (1, 3):
            assert (group.rank, group.world_size, group.is_member(), group.backend) == (rank // 2, 2, True, "GLOO")
            assert [group.get_group_rank(member) for member in (1, 3)] == [0, 1]
            assert module._get_or_throw_group_rank(3, group) == 1
            assert [group.get_global_rank(member) for member in (0, 1)] == [1, 3]
            assert module._warn_cur_rank_not_in_group(group) is False
            for kind, wrong in (
                (ValueError, lambda: group.get_group_rank(0)),
                (IndexError, lambda: group.get_global_rank(2)),
                (IndexError, lambda: group.get_global_rank(-1)),
            ):
                assert_refused(kind, None, wrong)
        else:
            assert (group.rank, group.world_size, group.is_member()) == (-1, -1, False)
            assert (group.get_group_rank(1), group.get_global_rank(0)) == (-1, -1)
            with pytest.raises(RuntimeError, match="member"):
                dist.get_backend(group)
            with pytest.warns(UserWarning, match=f"rank {rank} does not belong") as caught_warnings:
                assert module._warn_cur_rank_not_in_group(group) is True
            assert caught_warnings[0].filename == __file__
        assert module._warn_cur_rank_not_in_group(None) is False
    with pytest.raises(RuntimeError, match="init_parallel_env"):
        module._get_global_group()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_names_by_their_other_paths(version: str) -> None:
    dist = VERSIONS[version]
    for module in (dist.communication, GROUP_MODULES[version], COLLECTIVE_MODULES[version]):
        for name in module.__all__:
            if not name.startswith("_") and not inspect.ismodule(getattr(module, name)):
                assert getattr(module, name) is getattr(dist, name), name
    assert dist.communication.group is GROUP_MODULES[version]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_warning_points_at_the_callers_line(rank: int, version: str) -> None:
    with world(version) as dist:
        group, one = dist.new_group([0]), np.ones(2)
        if rank == 0:
            return
        for call in (
            lambda: dist.all_reduce(one, group=group),
            lambda: dist.alltoall([one], [one], group),
            lambda: dist.alltoall_single(one, one, group=group),
            lambda: dist.broadcast(one, 0, group),
            lambda: dist.gather(one, [one], 0, group),
            lambda: dist.recv(one, 0, group),
            lambda: dist.reduce(one, 0, group=group),
            lambda: dist.reduce_scatter(one, [one], group=group),
            lambda: dist.scatter(one, [one], 0, group),
            lambda: dist.send(one, 0, group),
        ):
            with pytest.warns(UserWarning, match="does not belong") as caught:
                assert call() is None
            assert [(each.filename, each.lineno) for each in caught] == [(__file__, call.__code__.co_firstlineno)]
        with pytest.warns(UserWarning, match="no group 7") as caught:
            assert dist.get_group(7) is None
        assert caught[0].filename == __file__


def total(dist: Any, rank: int, group: Any) -> float:
    tensor = np.array([float(rank)])
    dist.all_reduce(tensor, group=group)
    return float(tensor[0])


@pytest.mark.ranks(3)
def test_shutting_down_and_restarting(rank: int) -> None:
    with world() as dist:
        pair, everyone = dist.new_group([0, 2]), dist.new_group()
        mine = [group for group in (pair, everyone) if group.is_member()]
        for one in (None, everyone, pair):
            dist.shutdown_process_group(one)
            for group in mine:
                if one in (None, group):
                    for call in (
                        lambda group=group: dist.all_reduce(np.ones(1), group=group),
                        lambda group=group: dist.barrier(group),
                    ):
                        with pytest.raises(RuntimeError, match="restart_process_group") as caught:
                            call()
                        assert isinstance(caught.value, StateError)
                else:
                    assert total(dist, rank, group) == sum(group.ranks)
            assert total(dist, rank, None) == 3
            dist.shutdown_process_group(one)  # nothing happens twice
            dist.restart_process_group(one)
            dist.restart_process_group(one)
            for group in mine:
                assert total(dist, rank, group) == sum(group.ranks)
                assert dist.get_group(group.id) is group
        assert dist.new_group([1, 2]).id == 12
        dist.shutdown_process_group(everyone)
        dist.destroy_process_group(everyone)
        dist.restart_process_group()
        with pytest.raises(RuntimeError, match="destroyed"):
            dist.barrier(everyone)
        dist.shutdown_process_group()
    with world():
        assert dist.new_group().id == 10
        assert total(dist, rank, dist.get_group(10)) == 3


@pytest.mark.ranks(2)
def test_what_cannot_be_shut_down(rank: int) -> None:
    dist = VERSIONS["3"]
    for call in (dist.shutdown_process_group, dist.restart_process_group):
        with pytest.raises(RuntimeError, match="init_parallel_env"):
            call()
    with world():
        with pytest.raises(UnsupportedError, match="destroy_process_group"):
            dist.shutdown_process_group(dist.get_group())
        with pytest.raises(TypeError, match="group"):
            dist.shutdown_process_group(0)
        dist.restart_process_group(dist.get_group())
        assert total(dist, rank, None) == 1
    assert not hasattr(VERSIONS["2"], "shutdown_process_group")


@pytest.mark.ranks(2)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_group_of_one_rank_does_everything(rank: int, version: str) -> None:
    with world(version) as dist:
        group = [dist.new_group([one]) for one in range(2)][rank]
        filled: list[Any] = []
        dist.all_gather_object(filled, rank, group)
        dist.broadcast_object_list(filled, rank, group)
        dist.scatter_object_list(filled, filled, rank, group)
        assert filled == [rank]
        tensor, output = numbers(rank, 3), np.zeros(3)
        dist.reduce(tensor, rank, group=group)
        dist.reduce_scatter(output, [tensor], group=group)
        check("numpy", output, numbers(rank, 3))
        dist.scatter(output, [tensor], rank, group)
        gathered: list[Any] = []
        dist.gather(output, gathered, rank, group)
        dist.stream.alltoall(gathered, [tensor], group)
        check("numpy", gathered[0], numbers(rank, 3))
        with pytest.raises(ValueError, match="dst"):
            dist.send(tensor, rank, group)
