"""Collectives, sends and receives of Python objects through the Paddle frontends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from paddle_world import VERSIONS, world
from wrong_calls import assert_refused, named

from shim.errors import MismatchError, ShimError


class Point:
    """An object of a class of one's own."""

    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and other.x == self.x

    __hash__ = None  # type: ignore[assignment]  # a class with an __eq__ alone has none


def thing(rank: int) -> Any:
    """Pickles of very different lengths."""
    return [{"rank": rank, "rows": list(range(1000 * rank))}, Point(rank), "x" * rank, None][rank % 4]


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
def test_broadcast_object_list_from_every_rank(rank: int, world_size: int, version: str) -> None:
    with world(version) as dist:
        for src in range(world_size):
            sent = [thing(src), Point(src), src]
            filled = sent if rank == src else [None] * 3
            there = filled
            assert dist.broadcast_object_list(filled, src) is None
            assert filled is there
            assert filled == [thing(src), Point(src), src]
        filled = []
        dist.broadcast_object_list(filled, 0)
        assert filled == []


@pytest.mark.ranks(4)
@pytest.mark.parametrize("version", VERSIONS)
def test_in_a_group(rank: int, world_size: int, version: str) -> None:
    """Paddle's own scatter_object_list waits here for ever."""
    with world(version) as dist:
        group = dist.new_group([1, 3])
        if rank in (1, 3):
            gathered: list[Any] = []
            dist.all_gather_object(gathered, Point(rank), group)
            assert gathered == [Point(1), Point(3)]
            filled = [Point(rank)]
            dist.broadcast_object_list(filled, 3, group)
            assert filled == [Point(3)]
            dist.scatter_object_list(filled, [Point(10), Point(30)] if rank == 3 else None, 3, group)
            assert filled == [Point(10 * rank)]
        else:
            with pytest.raises(RuntimeError, match="does not belong"):
                dist.all_gather_object([], 1, group)
            for call in (
                lambda kept: dist.broadcast_object_list(kept, 1, group),
                lambda kept: dist.scatter_object_list(kept, None, 1, group),
            ):
                kept = ["mine"]
                with pytest.warns(UserWarning, match="does not belong") as caught:
                    assert call(kept) is None
                assert caught[0].filename == __file__
                assert kept == ["mine"]
        dist.barrier()


@pytest.mark.ranks(3)
@pytest.mark.parametrize("in_group", [False, True])
def test_send_and_receive_object_lists(rank: int, in_group: bool) -> None:
    with world() as dist:
        group = dist.new_group([0, 2])
        items = [thing(0), Point(5), 7]
        if rank == 0:
            arguments = {"dst_in_group": 1} if in_group else {"dst": 2}
            assert dist.send_object_list(items, group=group, **arguments) is None
            dist.send_object_list([items], 1)
        elif rank == 2:
            filled: list[Any] = [None] * 3
            arguments = {"src_in_group": 0} if in_group else {"src": 0}
            assert dist.recv_object_list(filled, group=group, **arguments) is None
            assert filled == items
        else:
            for call in (
                lambda: dist.send_object_list([1], 0, group),
                lambda: dist.send_object_list([1], None, group, 0),
                lambda: dist.recv_object_list([1], 0, group),
            ):
                with pytest.warns(UserWarning, match="does not belong") as caught:
                    assert call() is None
                assert caught[0].filename == __file__
            filled = [None]
            dist.recv_object_list(filled)  # from rank 0
            assert filled == [items]
        dist.barrier()


def test_paddle_2_does_not_send_objects() -> None:
    assert not hasattr(VERSIONS["2"], "send_object_list")
    assert not hasattr(VERSIONS["2"].communication, "recv_object_list")


@pytest.mark.ranks(2)
def test_wrong_object_lists_to_send(rank: int, world_size: int) -> None:
    with world() as dist:
        for kind, wrong, words in (
            (ValueError, lambda: dist.send_object_list([], 1 - rank), "object_list"),
            (ValueError, lambda: dist.send_object_list(None, 1 - rank), "object_list"),
            (TypeError, lambda: dist.send_object_list("ab", 1 - rank), "object_list"),
            (ValueError, lambda: dist.recv_object_list([], 1 - rank), "object_list"),
            (ValueError, lambda: dist.send_object_list([1], 1 - rank, None, 1 - rank), "dst_in_group"),
            (ValueError, lambda: dist.recv_object_list([1], 1 - rank, None, 1 - rank), "src_in_group"),
            (ValueError, lambda: dist.send_object_list([1], None, None, 2), "dst_in_group must be in 0..1, got 2"),
            (ValueError, lambda: dist.recv_object_list([1], None, None, -1), "src_in_group"),
            (ValueError, lambda: dist.send_object_list([1], rank), "dst"),
            (ValueError, lambda: dist.recv_object_list([1], 5), "rank 5"),
            (TypeError, lambda: dist.send_object_list([lambda: 1], 1 - rank), "picklable"),
        ):
            assert_refused(kind, words, wrong)
        dist.barrier()


@pytest.mark.ranks(2)
def test_lists_of_different_lengths_are_refused(rank: int) -> None:
    with world() as dist:
        with pytest.raises(MismatchError):
            dist.broadcast_object_list([1] * (1 + rank), 0)
        if rank == 0:
            dist.send_object_list([1, 2], 1)
        else:
            filled = [None]
            with pytest.raises(ShimError, match="rank 0 sent 2 objects where this rank receives 1"):
                dist.recv_object_list(filled, 0)
            assert filled == [None]


# What rank 1, the root where there is one, does wrong, and the class of error it gets.
WRONG: dict[str, tuple[type[Exception], str, Any]] = {
    "gather into a tuple": (TypeError, "object_list", lambda dist: dist.all_gather_object((), 1)),
    "gather no pickle": (TypeError, "obj must be picklable", lambda dist: dist.all_gather_object([], lambda: 1)),
    "broadcast no list": (TypeError, "object_list", lambda dist: dist.broadcast_object_list("abc", 1)),
    "broadcast no pickle": (TypeError, "object_list", lambda dist: dist.broadcast_object_list([lambda: 1] * 3, 1)),
    "scatter nothing": (TypeError, "in_object_list", lambda dist: dist.scatter_object_list([], None, 1)),
    "scatter too little": (ValueError, "in_object_list", lambda dist: dist.scatter_object_list([], [1], 1)),
    "scatter empty": (ValueError, "in_object_list", lambda dist: dist.scatter_object_list([], [], 1)),
    "scatter into nothing": (TypeError, "out_object_list", lambda dist: dist.scatter_object_list(None, [1] * 3, 1)),
}
RIGHT = {
    "gather": lambda dist: dist.all_gather_object([], 1),
    "broadcast": lambda dist: dist.broadcast_object_list([0] * 3, 1),
    "scatter": lambda dist: dist.scatter_object_list([], None, 1),
}


@pytest.mark.ranks(3)
def test_one_wrong_rank_is_told_to_all(rank: int, world_size: int) -> None:
    with world() as dist:
        for name, (kind, words, wrong) in WRONG.items():
            with named(name):
                if rank == 1:
                    assert_refused(kind, words, wrong, dist)
                else:
                    assert_refused(MismatchError, "rank 1", RIGHT[name.partition(" ")[0]], dist)
                gathered: list[Any] = []
                dist.all_gather_object(gathered, np.full(2, rank))
                assert [array.tolist() for array in gathered] == [[other] * 2 for other in range(world_size)]


@pytest.mark.ranks(2)
def test_a_receiver_is_told_that_its_sender_refused(rank: int) -> None:
    with world() as dist:
        if rank == 0:
            with pytest.raises(ShimError, match="object_list must"):
                dist.send_object_list([lambda: 1], 1)
        else:
            with pytest.raises(MismatchError, match=r"rank 0 has not sent its objects, which cannot be pickled"):
                dist.recv_object_list([None], 0)
        dist.barrier()


@pytest.mark.ranks(2)
def test_a_list_that_both_refuse_is_no_part_of_the_next(rank: int) -> None:
    with world() as dist:
        for turn, wrong in enumerate(([], 1)):
            call = dist.recv_object_list if rank else dist.send_object_list
            with pytest.raises(ShimError, match="object_list must"):
                call(wrong, 1 - rank)
            items = [None] if rank else [f"right {turn}"]
            call(items, 1 - rank)
            assert items == [f"right {turn}"]
        dist.barrier()
