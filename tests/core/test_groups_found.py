"""Finding a group by the ranks in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shim.core import groups
from shim.core.callers import Caller

ME = Caller("test")


@pytest.fixture
def world() -> Iterator[groups.ProcessGroup]:
    yield groups.enter_world(ME, "test", rank=0, world_size=1)
    groups.close_world()


def test_the_oldest_group_of_these_ranks_is_found(world: groups.ProcessGroup) -> None:
    again = groups.new_group(ME, [0])
    assert groups.find_group_of([0]) is world
    assert groups.find_group_of([]) is None
    assert groups.find_group_of([0, 0]) is None
    assert groups.find_group_of([1]) is None
    groups.close_group(again)
    assert groups.find_group_of([0]) is world


def test_none_is_found_without_a_world() -> None:
    assert groups.find_group_of([0]) is None


@pytest.mark.ranks(3)
def test_order_does_not_matter_and_outsiders_find_none(rank: int, world_size: int) -> None:
    groups.enter_world(ME, "test")
    pair = groups.new_group(ME, [2, 0])
    assert groups.find_group_of([0, 2]) is (None if rank == 1 else pair)
    groups.close_group(pair)
    assert groups.find_group_of([2, 0]) is None
    assert groups.find_group_of([1, 0, 2]) is groups.world(ME)
