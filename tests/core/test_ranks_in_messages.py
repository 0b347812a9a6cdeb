"""What messages say of ranks: of the world too where it counts them otherwise, with every rank's line, in whole words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from core_world import world

from shim.core import calls, groups, objects
from shim.core.callers import Caller
from shim.errors import ArgumentError, MismatchError

ME = Caller("test")


@contextmanager
def subgroup() -> Iterator[groups.ProcessGroup]:
    """Give a group of the world's ranks 1 and 2; rank 0 waits until they have left it."""
    with world() as everyone:
        yield groups.new_group(ME, [1, 2])
        calls.barrier(ME, everyone, now=True)


@pytest.mark.ranks(3)
def test_messages_of_a_subgroup_name_ranks_of_the_world_too(rank: int) -> None:
    with subgroup() as group:
        if rank == 0:
            return
        if rank == 1:
            calls.send(ME, group, np.ones(2), 1).wait()
        else:
            with pytest.raises(MismatchError) as caught:
                calls.receive(ME, group, np.ones(3), 0).wait()
            assert str(caught.value).splitlines()[0] == (
                "test: rank 0 (rank 1 of the world) sent 2 elements of float64 where this rank receives 3 elements of float64 "
                "(rank 1 of 2, rank 2 of the world, group 'group_1')"
            )
        with pytest.raises(MismatchError) as caught:
            calls.broadcast(ME, group, np.ones(rank), 1, now=True)
        mine = f"rank {rank - 1} of 2, rank {rank} of the world, group 'group_1'"
        assert f"({mine})\n" in str(caught.value)
        assert "broadcast(float64 [1], root 1 (rank 2 of the world))" in str(caught.value)
        assert "They differ: [1] on rank 0 (rank 1 of the world), [2] on rank 1 (rank 2 of the world)." in str(
            caught.value
        )


@pytest.mark.ranks(2)
def test_where_both_numbers_are_the_same_one_is_told(rank: int) -> None:
    world = groups.enter_world(ME, "test")
    with pytest.raises(MismatchError) as caught:
        calls.broadcast(ME, world, np.ones(rank + 1), 0, now=True)
    assert "of the world" not in str(caught.value)
    groups.close_world()


@pytest.mark.ranks(3)
def test_lists_of_objects_are_told_by_their_length(rank: int) -> None:
    with subgroup() as group:
        if rank == 0:
            return
        with pytest.raises(MismatchError) as caught:
            objects.broadcast(ME, group, ["a"] * rank, 0)
        told = "broadcast of 1 object on rank 0 (rank 1 of the world), broadcast of 2 objects on rank 1"
        assert told in str(caught.value)


@pytest.mark.ranks(3)
def test_ranks_that_disagree_on_a_new_group_are_told_each_others_lines(rank: int) -> None:
    groups.enter_world(ME, "test")
    with pytest.raises(MismatchError) as caught:
        groups.new_group(ME, [0, 1] if rank == 0 else [0, 2])
    lines = str(caught.value).splitlines()[1:4]
    assert [line.endswith("  <- this rank") for line in lines] == [number == rank for number in range(3)]
    for number, line in enumerate(lines):
        assert re.match(
            rf"  rank {number}: \[0, {1 if number == 0 else 2}\], at {re.escape(__file__)}:\d+ in test_", line
        )
    with pytest.raises((ArgumentError, MismatchError)) as caught:
        groups.new_group(ME, [0, 0] if rank == 0 else [0, 2])
    assert rank == 0 or f"{__file__}:" in str(caught.value).split("refused:")[1].splitlines()[0]
    groups.close_world()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("word", ["word", "a-very-long-word" * 2, "ä" * 100])
def test_a_long_reason_ends_with_a_whole_word(rank: int, word: str) -> None:
    world = groups.enter_world(ME, "test")
    reason = " ".join([word] * 100)
    if rank == 0:
        with pytest.raises(ArgumentError):
            calls.refuse(ME, world, ArgumentError(reason))
    else:
        with pytest.raises(MismatchError) as caught:
            calls.barrier(ME, world, now=True)
        told = str(caught.value).splitlines()[1].split("test: ")[1].split(", at ")[0]
        assert told.endswith(f"{word}..." if len(word) < 100 else "ä...")
        assert len(told) > 100
    groups.close_world()
