"""Circles of waits in what processes tell, and what is none."""

from __future__ import annotations

import pytest

from shim.core.reports.inquiries import GroupFacts, ProcessFacts, WaitFacts
from shim.core.reports.waits import absent_ranks, circles_of_waits, told_circle

WORLD, PART, PAIR = 1, 2, 3


def group(inode: int, rank: int, operation: int, *awaited: int, size: int = 3, held: int = 2) -> GroupFacts:
    waits = WaitFacts(7, operation, f"in group 'group {inode}'", awaited, held) if awaited else None
    return GroupFacts(inode, f"group {inode}", "", rank, tuple(range(size)), 1800, operation, "", waits, "", ())


def process(rank: int, *groups: GroupFacts) -> ProcessFacts:
    return ProcessFacts(100 + rank, "python train.py", "sleeping", True, "", groups)


def circle(first: list[ProcessFacts], later: list[ProcessFacts]) -> list[list[tuple[int, int]]]:
    return [[(wait.rank, wait.inode) for wait in one] for one in circles_of_waits(first, later)]


TWO = [
    process(0, group(WORLD, 0, 5, 1), group(PART, 0, 1, size=2)),
    process(1, group(WORLD, 1, 4), group(PART, 1, 2, 0, size=2)),
]
THREE = [
    process(0, group(WORLD, 0, 9, 2), group(PART, 0, 1, size=2), group(PAIR, 0, 1, size=2)),
    process(1, group(WORLD, 1, 9), group(PART, 1, 2, 0, size=2)),
    process(2, group(WORLD, 2, 8), group(PAIR, 1, 2, 0, size=2)),
]


def test_ranks_that_wait_for_each_other_in_two_groups() -> None:
    assert circle(TWO, TWO) == [[(0, WORLD), (1, PART)]]


def test_a_circle_may_leave_out_ranks_that_wait_for_it() -> None:
    assert circle(THREE, THREE) == [[(0, WORLD), (2, PAIR)]]


def test_the_circle_that_is_named_is_a_short_one() -> None:
    round_all = [
        process(0, group(WORLD, 0, 9, 1, 2), group(PAIR, 0, 1)),
        process(1, group(WORLD, 1, 8), group(PART, 1, 2, 2)),
        process(2, group(WORLD, 2, 8), group(PART, 2, 1), group(PAIR, 2, 2, 0)),
    ]
    assert circle(round_all, round_all) == [[(0, WORLD), (2, PAIR)]]


def test_absent_ranks_are_those_of_a_collective() -> None:
    assert absent_ranks(THREE[0].groups[0], THREE) == {2: ("", 102)}
    assert absent_ranks(THREE[0].groups[1], THREE) == {}
    assert absent_ranks(group(WORLD, 0, 10, 1, 2), THREE[:2]) == {1: ("", 101)}
    assert absent_ranks(group(WORLD, 0, 9, 1, 2), THREE[:2]) == {}  # it has arrived, and rank 0 has not heard of it
    assert absent_ranks(group(WORLD, 0, 0, 1), THREE) == {}  # of a message


@pytest.mark.parametrize(
    ("held", "more"), [(2, ""), (1, ", unless another thread or a signal handler of theirs makes the missing call")]
)
def test_a_circle_is_told_from_its_lowest_rank_on(held: int, more: str) -> None:
    processes = [
        process(0, group(WORLD, 0, 5, 1, held=held), group(PART, 0, 1, size=2)),
        process(1, group(WORLD, 1, 4), group(PART, 1, 2, 0, size=2)),
    ]
    (found,) = circles_of_waits(processes, processes)
    assert told_circle(found[1:] + found[:1]) == (
        "rank 0 waits in group 'group 1' for rank 1, which waits in group 'group 2' for rank 0: they wait for each other"
        + more
    )


@pytest.mark.parametrize(
    "later",
    [
        TWO[:1],
        [TWO[0], process(1, group(WORLD, 1, 5), group(PART, 1, 2, size=2))],
        [TWO[0], process(1, group(WORLD, 1, 4), group(PART, 1, 3, 0, size=2))],
        [TWO[0], process(1, group(WORLD, 1, 4), group(PART, 1, 2, 0, size=2, held=0))],
    ],
    ids=["gone", "no wait", "another wait", "holds nothing"],
)
def test_what_has_changed_proves_nothing(later: list[ProcessFacts]) -> None:
    assert circle(TWO, later) == []
    assert circle(later, TWO) == []
