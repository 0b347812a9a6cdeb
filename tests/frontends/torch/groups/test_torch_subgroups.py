"""Dividing groups of torch's kind: which ranks are in which group, what they can do there, and what is refused."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from rank_numbers import check, numbers
from torch_world import world

import shim.frontends.torch.distributed as dist
from shim.errors import ArgumentError, MismatchError, StateError, UnsupportedError
from shim.frontends.torch.distributed import distributed_c10d as c10d


def assert_group(group: Any, ranks: list[int], rank: int) -> None:
    """Every member sums over the group, in whichever order its ranks are."""
    assert dist.get_process_group_ranks(group) == ranks
    assert (group.size(), group.rank()) == (len(ranks), ranks.index(rank))
    assert [dist.get_group_rank(group, other) for other in ranks] == list(range(len(ranks)))
    assert [dist.get_global_rank(group, place) for place in range(len(ranks))] == ranks
    gathered = np.zeros((len(ranks), 3))
    dist.all_gather_single(gathered, numbers(rank, 3), group)
    check("numpy", gathered, np.stack([numbers(other, 3) for other in ranks]))


@pytest.mark.ranks(1, 3, 4)
def test_subgroups_of_equal_size(rank: int, world_size: int) -> None:
    with world():
        for size in (size for size in range(1, world_size + 1) if world_size % size == 0):
            mine, all_of_them = dist.new_subgroups(size, timeout=timedelta(seconds=20), group_desc="part")
            first = rank - rank % size
            assert len(all_of_them) == world_size // size
            assert all_of_them[rank // size] is mine
            others = [group for group in all_of_them if group is not mine]
            assert others == [dist.GroupMember.NON_GROUP_MEMBER] * (world_size // size - 1)
            assert (mine.group_desc, mine.core.timeout) == ("part", 20.0)
            assert_group(mine, list(range(first, first + size)), rank)
            for group in all_of_them:
                dist.destroy_process_group(group)


@pytest.mark.ranks(4)
def test_subgroups_of_a_subgroup(rank: int, world_size: int) -> None:
    with world():
        outer = dist.new_group([3, 1, 2, 0], sort_ranks=False)
        if rank < 4:
            order = [3, 1, 2, 0]
            mine = dist.split_group(outer, [[0, 1], [2, 3]], group_desc="inner", backend="gloo")
            place = order.index(rank)
            assert_group(mine, order[:2] if place < 2 else order[2:], rank)
            assert (mine.group_desc, dist.get_backend(mine)) == ("inner", "gloo")
        dist.barrier()


@pytest.mark.ranks(4)
def test_members_alone_divide_a_subgroup(rank: int, world_size: int) -> None:
    """Two subgroups do so at once, and the names of the groups that all ranks make stay in step."""
    with world():
        halves = [list(range(0, world_size, 2)), list(range(1, world_size, 2))]
        outer = [dist.new_group(half) for half in halves][rank % 2]
        mine, all_of_them = dist.new_subgroups(1, outer) if rank % 2 == 0 else (None, [])
        if rank % 2 == 0:
            assert_group(mine, [rank], rank)
            assert len(all_of_them) == len(halves[0])
            assert all_of_them[rank // 2] is mine
            assert all_of_them.count(dist.GroupMember.NON_GROUP_MEMBER) == len(halves[0]) - 1
        dist.new_subgroups(len(halves[rank % 2]), outer)
        with pytest.raises(ValueError):
            dist.new_subgroups(1, dist.GroupMember.NON_GROUP_MEMBER)
        assert_group(dist.new_group(timeout=timedelta(seconds=15)), list(range(world_size)), rank)


@pytest.mark.ranks(1, 3, 4)
def test_subgroups_by_enumeration(rank: int, world_size: int) -> None:
    with world():
        odd = [other for other in range(world_size) if other % 2]
        parts = [part for part in ([0], list(reversed(odd))) if part]
        mine, all_of_them = dist.new_subgroups_by_enumeration(parts, backend="mpi")
        assert len(all_of_them) == len(parts)
        if rank == 0:
            assert_group(mine, [0], rank)
        elif rank % 2:
            assert_group(mine, odd, rank)
            assert dist.get_backend(mine) == "mpi"
        else:
            assert mine is None
        dist.barrier()


@pytest.mark.ranks(1, 3, 4)
def test_split_the_world(rank: int, world_size: int) -> None:
    with world():
        parts = [part for part in (list(range(1, world_size, 2)), list(range(0, world_size, 2))[::-1]) if part]
        for _ in range(3):  # again, with a different order of destroying
            mine = dist.split_group(split_ranks=parts)
            other = dist.split_group(dist.group.WORLD, [[world_size - 1]])
            assert_group(mine, sorted(part for part in parts[rank % 2 == 0 and world_size > 1]), rank)
            assert (other is None) == (rank != world_size - 1)
            if rank % 2:
                dist.destroy_process_group(mine)
            assert mine.core.timeout == dist.group.WORLD.core.timeout
        dist.barrier()


@pytest.mark.ranks(3)
def test_split_by_the_method(rank: int) -> None:
    with world():
        group = dist.group.WORLD.split_group([2, 0], timedelta(seconds=9), group_name="mine", group_desc="ours")
        if rank == 1:
            assert group is None
        else:
            assert_group(group, [2, 0], rank)
            assert (group.group_name, group.group_desc, group.core.timeout) == ("mine", "ours", 9.0)
            assert c10d._resolve_process_group("mine") is group
        with pytest.raises(UnsupportedError, match="opts"):
            dist.group.WORLD.split_group([0], opts=object())
        with pytest.raises(UnsupportedError, match="device_types"):
            dist.group.WORLD.split_group([0], device_types=["cuda"])


@pytest.mark.ranks(3)
def test_shrink_a_subgroup(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group(list(range(1, world_size)))
        if rank > 1:
            smaller = dist.shrink_group([0], group)
            assert_group(smaller, list(range(2, world_size)), rank)
            with pytest.raises(ValueError):
                dist.get_rank(group)
        elif rank == 1:
            with pytest.raises(RuntimeError, match="is excluded") as raised:
                dist.shrink_group([0], group)
            assert isinstance(raised.value, StateError)
        dist.barrier()


@pytest.mark.ranks(3)
def test_shrink_the_world(rank: int, world_size: int) -> None:
    with world():
        old = dist.group.WORLD
        subgroup = dist.new_group()
        if rank != 1:
            smaller = dist.shrink_group([1], shrink_flags=c10d.SHRINK_ABORT)
            rest = [other for other in range(world_size) if other != 1]
            assert smaller is dist.group.WORLD
            assert dist.is_initialized()
            assert (dist.get_rank(), dist.get_world_size()) == (rest.index(rank), world_size - 1)
            assert_group(smaller, rest, rank)
            for gone in (old, subgroup):
                with pytest.raises(ValueError):
                    dist.get_rank(gone)
            tensor = numbers(rank, 3)
            dist.broadcast(tensor, src=world_size - 1)
            check("numpy", tensor, numbers(world_size - 1, 3))
            assert_group(dist.new_group(), rest, rank)
            assert_group(dist.new_subgroups(world_size - 1)[0], rest, rank)
            with pytest.raises(ValueError, match="ranks must be in"):
                dist.new_group([0, 1])
    assert not dist.is_initialized()
    with world():
        dist.barrier()


REFUSED: list[tuple[Callable[[], Any], type[Exception]]] = [
    (lambda: dist.new_subgroups(), ValueError),
    (lambda: dist.new_subgroups(0), ValueError),
    (lambda: dist.new_subgroups(-1), ValueError),
    (lambda: dist.new_subgroups(2), ValueError),
    (lambda: dist.new_subgroups(4), ValueError),
    (lambda: dist.new_subgroups("1"), TypeError),
    (lambda: dist.new_subgroups(1, pg_options=object()), UnsupportedError),
    (lambda: dist.new_subgroups(1, backend="foo"), AssertionError),
    (lambda: dist.new_subgroups(1, timeout=5), TypeError),
    (lambda: dist.new_subgroups(1, group="world"), ValueError),
    (lambda: dist.new_subgroups_by_enumeration(None), ValueError),
    (lambda: dist.new_subgroups_by_enumeration([]), ValueError),
    (lambda: dist.new_subgroups_by_enumeration([[0], []]), ValueError),
    (lambda: dist.new_subgroups_by_enumeration([[0], [0, 1]]), ValueError),
    (lambda: dist.new_subgroups_by_enumeration([[0, 0]]), ValueError),
    (lambda: dist.new_subgroups_by_enumeration([[3]]), ValueError),
    (lambda: dist.new_subgroups_by_enumeration([0, 1]), TypeError),
    (lambda: dist.new_subgroups_by_enumeration(5), TypeError),
    (lambda: dist.split_group(None, 5), TypeError),
    (lambda: dist.split_group(None, [5]), TypeError),
    (lambda: dist.shrink_group([[1]]), TypeError),
    (lambda: dist.split_group(), ValueError),
    (lambda: dist.split_group(None, []), ValueError),
    (lambda: dist.split_group(None, [[]]), ValueError),
    (lambda: dist.split_group(None, [[0, 0]]), ValueError),
    (lambda: dist.split_group(None, [[0, 1], [1]]), ValueError),
    (lambda: dist.split_group(None, [[0, 3]]), ValueError),
    (lambda: dist.split_group(None, [["0"]]), TypeError),
    (lambda: dist.split_group(7, [[0]]), ValueError),
    (lambda: dist.split_group(None, [[0]], pg_options=object()), UnsupportedError),
    (lambda: dist.split_group(None, [[0]], backend="nccl"), ValueError),
    (lambda: dist.split_group(None, [[0]], timeout=5), TypeError),
    (lambda: dist.shrink_group(0), TypeError),
    (lambda: dist.shrink_group([]), ValueError),
    (lambda: dist.shrink_group([3]), ValueError),
    (lambda: dist.shrink_group([1, 1]), ValueError),
    (lambda: dist.shrink_group([0, 1, 2]), ValueError),
    (lambda: dist.shrink_group(["1"]), TypeError),
    (lambda: dist.shrink_group([1], shrink_flags=2), ValueError),
    (lambda: dist.shrink_group([1], pg_options=object()), UnsupportedError),
    (lambda: dist.new_group(ranks=[0, 1, 2, 0]), ValueError),
    (lambda: dist.get_group_rank(dist.group.WORLD, 3), ValueError),
    (lambda: dist.get_global_rank(dist.group.WORLD, -1), ValueError),
]


@pytest.mark.ranks(3)
def test_what_is_refused_on_every_rank(rank: int) -> None:
    for call, _ in REFUSED:
        with pytest.raises(ValueError):
            call()  # not initialised
    with world():
        for call, kind in REFUSED:
            with pytest.raises(kind):
                call()
        dist.barrier()
        assert dist.get_pg_count() == 1


@pytest.mark.ranks(3)
def test_what_is_refused_on_one_rank_is_told_to_all(rank: int, world_size: int) -> None:
    everyone = list(range(world_size))
    with world():
        for divide, wrong, right in (
            (dist.new_subgroups, world_size + 1, world_size),
            (dist.new_subgroups, None, world_size),
            (dist.new_subgroups, "1", world_size),
            (dist.new_subgroups_by_enumeration, [[0, 0]], [everyone]),
            (dist.new_subgroups_by_enumeration, [], [everyone]),
            (dist.new_subgroups_by_enumeration, [["a"]], [everyone]),
        ):
            for odd in everyone:
                if rank == odd:
                    with pytest.raises((ArgumentError, TypeError)):
                        divide(wrong)
                else:
                    with pytest.raises(MismatchError, match=rf"rank {odd}: refused: torch.distributed.new_subgroups"):
                        divide(right)
            assert_group(divide(right)[0], everyone, rank)


@pytest.mark.ranks(3)
def test_names_are_the_same_after_one_rank_refused(rank: int, world_size: int) -> None:
    with world():
        for divide, wrong, right in (
            (dist.new_subgroups, world_size + 1, world_size),
            (dist.new_subgroups_by_enumeration, [], [list(range(world_size))]),
        ):
            with pytest.raises(ArgumentError if rank == 0 else MismatchError):
                divide(wrong if rank == 0 else right)
            mine = divide(right)[0]
            names = [None] * world_size
            dist.all_gather_object(names, mine.group_name)
            assert names == [mine.group_name] * world_size


@pytest.mark.ranks(4)
@pytest.mark.parametrize("wrong", [[[0, 1], [2, 4]], [[0, 1], [1, 2]], 5])
def test_a_split_that_one_rank_refuses_is_no_part_of_the_next(rank: int, wrong: Any) -> None:
    with world():
        if rank == 0:
            with pytest.raises(ArgumentError):
                dist.split_group(None, wrong)
        elif rank == 1:
            with pytest.raises(TimeoutError):
                dist.split_group(None, [[0, 1], [2, 3]], timeout=timedelta(seconds=0.5))
        else:
            dist.split_group(None, [[0, 1], [2, 3]])
        for parts in ([[0, 1], [2, 3]], [[3, 0], [1, 2]]):
            mine = dist.split_group(None, parts, timeout=timedelta(seconds=15))
            assert_group(mine, sorted(next(part for part in parts if rank in part)), rank)
        dist.barrier()


OF_MEMBERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "new_group": (
        functools.partial(dist.new_group, [0, 1], timedelta(seconds=2), use_local_synchronization=True),
        {"device_id": "cuda"},
    ),
    "split_group": (lambda **given: dist.group.WORLD.split_group([0, 1], **given), {"opts": object()}),
    "shrink_group": (functools.partial(dist.shrink_group, [2]), {"shrink_flags": 7}),
}


@pytest.mark.ranks(3)
@pytest.mark.parametrize("name", OF_MEMBERS)
def test_a_group_that_one_member_refuses_is_no_part_of_the_next(rank: int, name: str) -> None:
    make, wrong = OF_MEMBERS[name]
    dist.init_process_group("gloo", timeout=timedelta(seconds=2))
    try:
        if rank == 0:
            with pytest.raises((ArgumentError, UnsupportedError)):
                make(**wrong)
            time.sleep(2)  # while the other member waits
        elif rank == 1:
            with pytest.raises(TimeoutError):
                make()
        if rank < 2:
            assert_group(make(), [0, 1], rank)
    finally:
        dist.destroy_process_group()


@pytest.mark.ranks(2)
def test_groups_end_in_any_order(rank: int) -> None:
    with world():
        made = [dist.new_group() for _ in range(4)]
        made += [dist.new_group([0, 1], use_local_synchronization=True) for _ in range(3)]
        for group in made[1::2] if rank else made[::2]:
            dist.destroy_process_group(group)
        again = dist.new_group([0, 1], use_local_synchronization=True)
        assert_group(again, [0, 1], rank)
        for group in made[::2] if rank else made[1::2]:
            dist.destroy_process_group(group)
        for group in made:
            with pytest.raises(ArgumentError):
                dist.destroy_process_group(group)
        assert_group(dist.group.WORLD, [0, 1], rank)


@pytest.mark.ranks(2)
def test_a_group_has_its_own_timeout(rank: int) -> None:
    with world():
        group = dist.new_group(timeout=timedelta(seconds=5))
        if rank == 0:
            with pytest.raises(TimeoutError) as raised:
                dist.barrier(group)
            assert isinstance(raised.value, dist.DistBackendError)
            with pytest.raises(RuntimeError):
                dist.barrier(group)
        dist.barrier()
