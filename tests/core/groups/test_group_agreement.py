"""The ranks agree on a group before it is made: what is wrong on one of them is told to all, and the world goes on."""

from __future__ import annotations

import os
import re
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest
from core_world import world

from shim.core import calls, groups, objects
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.errors import ArgumentError, CollectiveTimeoutError, MismatchError, RankError, ShimError, StateError

ME = Caller("test", ranks="members")
SOON = 5.0  # seconds; the world's timeout is longer


def assert_raises_soon(kind: type[ShimError], match: str, function: Callable[[], object]) -> None:
    begin = time.monotonic()
    with pytest.raises(kind, match=match) as raised:
        function()
    assert raised.type is kind
    assert time.monotonic() - begin < SOON


def assert_all_goes_on(group: ProcessGroup) -> None:
    """A group can be made of all ranks of *group*, has the same name on each, and both work."""
    made = groups.new_group(ME, list(reversed(group.ranks)))
    assert objects.all_gather(ME, group, made.name) == [made.name] * group.size
    assert objects.all_gather(ME, made, group.rank) == list(reversed(group.ranks))


@pytest.mark.ranks(3)
@pytest.mark.parametrize(
    ("ranks", "kind", "text"),
    [
        ([0, 9], RankError, "members must be in 0"),
        ([0, 0], ArgumentError, "members must be different"),
        ([], ArgumentError, "members must name at least one"),
        ([0, 1.0], ArgumentError, "members must be integers"),
    ],
)
def test_what_is_refused_on_one_rank_is_told_to_all(
    rank: int, world_size: int, ranks: list[int], kind: type[ShimError], text: str
) -> None:
    with world(ME, timeout=60.0) as group:
        for odd in range(world_size):
            if rank == odd:
                assert_raises_soon(kind, f"^test: {text}.*rank {rank} of", lambda: groups.new_group(ME, ranks))
            else:
                refused = rf"^test: .*(.|\n)*rank {odd}: refused: test: {text}"
                assert_raises_soon(MismatchError, refused, lambda: groups.new_group(ME, [0, 1]))
            assert_all_goes_on(group)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("all_but", [[0, 1], [1, 0], [1]])
def test_ranks_that_differ_about_the_members_are_told(rank: int, world_size: int, all_but: Sequence[int]) -> None:
    with world(ME, timeout=60.0) as group:
        everyone = list(group.ranks)
        for odd in range(world_size):
            if all_but == everyone:
                continue
            make = partial(groups.new_group, ME, everyone if rank == odd else all_but)
            told = re.escape(f"rank {odd}: {everyone}")
            assert_raises_soon(MismatchError, rf"disagree on members of the new group(.|\n)*{told}", make)
            assert_all_goes_on(group)


@pytest.mark.ranks(4)
def test_ranks_may_each_name_a_group_of_their_own(rank: int, world_size: int) -> None:
    with world(ME, timeout=60.0) as group:
        low, high = list(range(world_size // 2)), list(range(world_size // 2, world_size))
        for lists in ([low, high], [[other] for other in range(world_size)], [high[::-1], low]):
            mine = next(ranks for ranks in lists if rank in ranks)
            made = groups.new_group(ME, mine)
            assert objects.all_gather(ME, made, (rank, made.name)) == [(other, made.name) for other in mine]
            assert_all_goes_on(group)


@pytest.mark.ranks(3)
def test_a_group_here_and_another_collective_there_are_a_mismatch(rank: int, world_size: int) -> None:
    with world(ME, timeout=60.0) as group:
        for odd in range(world_size):
            for lonely in (rank == odd, rank != odd):
                call = (lambda: groups.new_group(ME, [0])) if lonely else calls.barrier(ME, group).wait
                assert_raises_soon(MismatchError, "disagree on the operation", call)
            assert_all_goes_on(group)


@pytest.mark.ranks(3)
def test_no_call_of_a_users_is_taken_for_a_word_on_the_group(rank: int, world_size: int) -> None:
    """Not even a gathering of as many integers as the ranks' words are, in which a group without rank 1 could be read."""
    with world(ME, timeout=60.0) as group:
        mine, everyone = array("q", [-5, -1, -1, -1]), array("q", bytes(8 * 4 * world_size))
        gathering = partial(calls.all_gather, ME, group, everyone, mine, now=True)
        making = partial(groups.new_group, ME, [0, 2])
        assert_raises_soon(MismatchError, "disagree on the operation", gathering if rank == 1 else making)
        assert not any(everyone)
        assert_all_goes_on(group)


@pytest.mark.ranks(3)
def test_the_worlds_timeout_holds_while_ranks_agree(rank: int, world_size: int) -> None:
    with world(ME, timeout=1.0):
        begin = time.monotonic()
        if rank == 1:
            time.sleep(1.5)
        else:
            with pytest.raises(CollectiveTimeoutError) as raised:
                groups.new_group(ME, [0], timeout=60.0)
            assert raised.value.ranks == (1,)
        assert time.monotonic() - begin < SOON


@pytest.mark.ranks(3)
def test_the_ranks_of_a_smaller_group_agree_alone(rank: int) -> None:
    with world(ME, timeout=60.0):
        if rank == 1:
            return
        few = groups.new_group(ME, [2, 0], name="few")
        with pytest.raises(RankError, match=r"members must be in \[2, 0\], got 1"):
            groups.agree_on_group(ME, [0, 1], few)
        name, members = groups.agree_on_group(ME, None, few)
        assert members == (2, 0)
        made = groups.new_group(ME, [2, 0], name=name)
        assert objects.all_gather(ME, made, rank) == [2, 0]


@pytest.mark.ranks(3)
def test_ranks_that_have_made_different_numbers_of_groups_agree_on_a_name(rank: int) -> None:
    """The members of a smaller group have numbered one of their own, of which the third knows nothing."""
    with world(ME, timeout=60.0) as group:
        if rank != 1:
            groups.agree_on_group(ME, None, groups.new_group(ME, [2, 0], name="few"))
        assert_all_goes_on(group)


@pytest.mark.ranks(4)
def test_smaller_groups_name_theirs_apart(rank: int) -> None:
    with world(ME, timeout=60.0) as group:
        half = [0, 1] if rank < 2 else [2, 3]
        few = groups.new_group(ME, half, name=f"half_{half[0]}")
        for _ in range(5):
            name, members = groups.agree_on_group(ME, None, few)
            made = groups.new_group(ME, members, name=name)
            assert objects.all_gather(ME, made, rank) == half
        names = objects.all_gather(ME, group, name)
        assert names[0] == names[1] != names[2] == names[3]


@pytest.mark.ranks(2)
def test_the_ranks_may_come_from_a_generator(rank: int) -> None:
    with world(ME, timeout=60.0):
        for name in (None, "named"):
            made = groups.new_group(ME, (1 - place for place in range(2)), name=name)
            assert objects.all_gather(ME, made, rank) == [1, 0]


class Broken:
    """Ranks that raise what is no error of this project."""

    def __iter__(self) -> Iterator[int]:
        raise ValueError("mine")


@pytest.mark.ranks(3)
def test_what_the_users_ranks_raise_is_told_to_all(rank: int, world_size: int) -> None:
    with world(ME, timeout=60.0) as group:
        for odd in range(world_size):
            if rank == odd:
                with pytest.raises(ValueError, match="mine"):
                    groups.new_group(ME, Broken())
            else:
                refused = rf"rank {odd}: refused: ValueError: mine"
                assert_raises_soon(MismatchError, refused, lambda: groups.new_group(ME, [0, 1]))
            assert_all_goes_on(group)


@pytest.mark.ranks(2)
def test_a_name_is_given_to_one_group_at_a_time() -> None:
    with world(ME, timeout=60.0) as group:
        first = groups.new_group(ME, [0, 1], name="mine")
        with pytest.raises(StateError, match="a group named 'mine' already exists"):
            groups.new_group(ME, [0, 1], name="mine")
        assert_all_goes_on(group)
        groups.close_group(first)
        assert groups.new_group(ME, [0, 1], name="mine").size == 2


@pytest.mark.ranks(1)
def test_a_forked_child_makes_no_group_of_its_parents_world() -> None:
    with world(ME, timeout=60.0):
        child = os.fork()
        if child == 0:
            try:
                groups.new_group(ME, [0], name="of the child")
            except StateError as error:
                os._exit(0 if "was made before this process was forked" in str(error) else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.ranks(1)
def test_a_lone_rank_agrees_with_itself() -> None:
    with world(ME, timeout=60.0) as group:
        assert_all_goes_on(group)


def make(*ranks: int, name: str = "") -> Callable[[], object]:
    return partial(groups.new_group, ME, ranks, name=name or "of " + " ".join(map(str, ranks)))


OF_ONE_HASH = ("8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ")  # all 64 bits of FNV-1a


@pytest.mark.engine("shared_memory")
@pytest.mark.ranks(3)
@pytest.mark.parametrize(
    "calls_of_ranks",
    [
        pytest.param([make(0, 1), make(0, 1, 2), make(0, 1, 2)], id="other members"),
        pytest.param([make(0, 1), make(1, 2), make(0, 2)], id="around"),
        pytest.param([make(0, 1), None, None], id="the others elsewhere"),
        pytest.param([make(0, 2), make(1, 2), None], id="one elsewhere"),
        pytest.param([make(0, 1, 2, name=OF_ONE_HASH[rank % 2]) for rank in range(3)], id="names of equal FNV-1a"),
    ],
)
def test_members_that_wait_for_each_other_in_vain_are_told(
    rank: int, calls_of_ranks: list[Callable[[], object] | None]
) -> None:
    with world(ME, timeout=60.0) as group:
        call = calls_of_ranks[rank]
        if call is None:
            told = r"rank 0: refused: group 'of .*' cannot be made"
            assert_raises_soon(MismatchError, told, calls.barrier(ME, group).wait)
        else:
            told = rf"(?s)cannot be made, because these ranks wait for each other.*rank {rank} has waited .* <- this"
            assert_raises_soon(MismatchError, told, call)
        assert_all_goes_on(group)


@pytest.mark.ranks(3)
def test_a_late_member_is_waited_for(rank: int) -> None:
    """Although the third waits for both of them in the world."""
    with world(ME, timeout=60.0) as group:
        if rank == 0:
            time.sleep(2.5)
        if rank < 2:
            make(0, 1)()
        calls.barrier(ME, group).wait()
        assert_all_goes_on(group)
