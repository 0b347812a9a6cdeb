"""Collectives of objects give every rank what was sent, whatever the sizes, and refuse what cannot be pickled."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from core_world import world

from shim.core import calls, groups, objects
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.errors import ArgumentError, MismatchError, ShimError, TensorError, UnsupportedError

ME = Caller("test", input="item", outsider="warn")


def item(rank: int) -> Any:
    """An object whose pickle differs in size by rank, from nothing much to more than fits into a message."""
    return {"rank": rank, "text": "x" * (rank * 70_000), "none": None}


def unpicklable() -> Any:
    return lambda: None


@pytest.mark.ranks(1, 3)
def test_all_gather(rank: int, world_size: int) -> None:
    with world(ME, timeout=60.0) as group:
        assert objects.all_gather(ME, group, item(rank)) == [item(other) for other in range(world_size)]


@pytest.mark.ranks(3)
def test_no_call_of_a_users_meets_the_sizes_of_objects(rank: int, world_size: int) -> None:
    with world(ME, timeout=60.0) as group:
        for send in (
            lambda: objects.all_gather(ME, group, "x"),
            lambda: objects.gather(ME, group, "x", 0),
            lambda: objects.broadcast(ME, group, ["x"], 0),
            lambda: objects.scatter(ME, group, ["x"] * world_size if rank == 0 else None, 0),
        ):
            for meet in (
                lambda: calls.all_gather(ME, group, array("q", bytes(8 * world_size)), array("q", [1]), now=True),
                lambda: calls.broadcast(ME, group, array("q", [1]), 0, now=True),
                lambda: calls.barrier(ME, group, True),
            ):
                with pytest.raises(MismatchError, match=r"rank \d: \w+ of (1 )?objects?, at "):
                    (meet if rank == 1 else send)()
        assert objects.all_gather(ME, group, rank) == list(range(world_size))


@pytest.mark.ranks(1, 3)
def test_gather_to_every_rank(rank: int, world_size: int) -> None:
    with world(ME, timeout=60.0) as group:
        for root in range(world_size):
            gathered = objects.gather(ME, group, item(rank), root)
            assert gathered == ([item(other) for other in range(world_size)] if rank == root else None)


@pytest.mark.ranks(1, 3)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_broadcast_from_every_rank(rank: int, world_size: int, count: int) -> None:
    with world(ME, timeout=60.0) as group:
        for root in range(world_size):
            mine = [(rank, item(i)) for i in range(count)]
            assert objects.broadcast(ME, group, mine, root) == [(root, item(i)) for i in range(count)]


@pytest.mark.ranks(1, 3)
def test_scatter_from_every_rank(rank: int, world_size: int) -> None:
    with world(ME, timeout=60.0) as group:
        for root in range(world_size):
            items = [(root, item(other)) for other in range(world_size)] if rank == root else None
            assert objects.scatter(ME, group, items, root) == (root, item(rank))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("from_any", [False, True])
def test_send_to_the_next_rank(rank: int, world_size: int, from_any: bool) -> None:
    with world(ME, timeout=60.0) as group:
        for sender in range(world_size):
            receiver = (sender + 1) % world_size
            if rank == sender:
                objects.send(ME, group, [item(2), sender], receiver, tag=5)
            elif rank == receiver:
                received = objects.receive(ME, group, 2, None if from_any else sender, tag=5)
                assert received == ([item(2), sender], sender)


@pytest.mark.ranks(3)
def test_what_cannot_be_pickled_is_refused_on_every_rank(rank: int, world_size: int) -> None:
    with world(ME, timeout=60.0) as group:
        for odd in range(world_size):
            error = TensorError if rank == odd else MismatchError
            with pytest.raises(error, match="item must be picklable"):
                objects.all_gather(ME, group, unpicklable() if rank == odd else 1)
        assert objects.all_gather(ME, group, rank) == [0, 1, 2]


class NotFoundError(LookupError):
    pass


class Unpicklable:
    def __reduce__(self) -> Any:
        raise NotFoundError("no way to make it again")


@pytest.mark.ranks(2)
def test_the_error_is_of_the_class_that_the_object_raised_too(rank: int, world_size: int) -> None:
    with world(ME, timeout=60.0) as group:
        for call in (
            lambda: objects.all_gather(ME, group, Unpicklable()),
            lambda: objects.gather(ME, group, Unpicklable(), 0),
            lambda: objects.broadcast(ME, group, [Unpicklable()], rank),
            lambda: objects.scatter(ME, group, [1, Unpicklable()], rank),
            lambda: objects.send(ME, group, [Unpicklable()], 1 - rank),
        ):
            with pytest.raises(NotFoundError, match="item must be picklable, got NotFoundError: no way") as caught:
                call()
            assert isinstance(caught.value, TensorError)
        assert objects.all_gather(ME, group, rank) == [0, 1]


@pytest.mark.ranks(3)
@pytest.mark.parametrize("from_any", [False, True])
def test_a_receiver_is_told_that_its_sender_refused(rank: int, world_size: int, from_any: bool) -> None:
    with world(ME, timeout=60.0) as group:
        for sender in range(world_size):
            receiver = (sender + 1) % world_size
            source = None if from_any else sender
            for turn in range(3):
                if rank == sender:
                    for _ in range(3):  # the same refusal for the one who listens
                        with pytest.raises(TensorError, match=rf"^test: item must be picklable, .*rank {rank} of"):
                            objects.send(ME, group, [1, unpicklable()], receiver, tag=2)
                    objects.send(ME, group, [sender, turn], receiver, tag=2)
                elif rank == receiver:
                    told = rf"^test: rank {sender} has not sent its objects, which cannot be pickled \(rank {rank}"
                    with pytest.raises(MismatchError, match=told):
                        objects.receive(ME, group, 2, source, tag=2)
                    assert objects.receive(ME, group, 2, source, tag=2) == ([sender, turn], sender)
        assert objects.all_gather(ME, group, rank) == list(range(world_size))


@pytest.mark.ranks(2)
def test_refusals_that_nobody_hears_leave_the_group_usable(rank: int) -> None:
    """Beyond its timeout, which ends a group where a message waits for a place."""
    with world(ME, timeout=5.0) as group:
        for _ in range(20 if rank == 0 else 0):
            with pytest.raises(TensorError, match="item must be picklable"):
                objects.send(ME, group, [unpicklable()], 1)
        assert objects.all_gather(ME, group, rank) == [0, 1]
        time.sleep(5.5)
        assert objects.all_gather(ME, group, rank) == [0, 1]


@pytest.mark.ranks(2)
def test_another_number_of_objects_is_a_mismatch_for_the_receiver(rank: int) -> None:
    with world(ME, timeout=60.0) as group:
        for sent, expected in ((0, 1), (3, 2), (1, 3)):
            if rank == 0:
                objects.send(ME, group, [item(2)] * sent, 1)
            else:
                with pytest.raises(
                    MismatchError, match=f"rank 0 sent {sent} objects? where this rank receives {expected}"
                ):
                    objects.receive(ME, group, expected, 0)
        if rank == 0:
            objects.send(ME, group, [item(1)], 1)
        else:
            assert objects.receive(ME, group, 1, 0) == ([item(1)], 0)


@pytest.mark.ranks(2)
def test_a_refusal_to_nobody_raises_itself(rank: int) -> None:
    with world(ME, timeout=60.0) as group:
        for peer in (7, -1):
            with pytest.raises(TensorError, match="item must be picklable"):
                objects.send(ME, group, [unpicklable()], peer)
        assert objects.all_gather(ME, group, rank) == [0, 1]


@pytest.mark.ranks(2)
def test_lists_of_different_lengths_are_a_mismatch(rank: int, world_size: int) -> None:
    with world(ME, timeout=60.0) as group:
        with pytest.raises(MismatchError):
            objects.broadcast(ME, group, [1, 2] if rank == 0 else [1], 0)
        assert objects.broadcast(ME, group, [rank], 0) == [0]


@pytest.mark.ranks(2)
def test_outside_the_group_nothing_is_sent(rank: int, world_size: int) -> None:
    with world(ME, timeout=60.0):
        group = groups.new_group(ME, [0])
        for call in (
            lambda: objects.all_gather(ME, group, 1),
            lambda: objects.gather(ME, group, 1, 0),
            lambda: objects.broadcast(ME, group, [1], 0),
            lambda: objects.scatter(ME, group, [1], 0),
        ):
            if rank == 0:
                call()
            else:
                with pytest.warns(UserWarning, match="does not belong"):
                    assert call() is None


EXCHANGES: dict[str, Callable[[ProcessGroup], object]] = {
    "all_gather": lambda group: objects.all_gather(ME, group, 1),
    "gather": lambda group: objects.gather(ME, group, 1, 0),
    "broadcast": lambda group: objects.broadcast(ME, group, [1], 0),
    "scatter": lambda group: objects.scatter(ME, group, [1, 2], 0),
}


@pytest.mark.ranks(2)
@pytest.mark.parametrize("forbidding", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("name", EXCHANGES)
def test_objects_can_be_forbidden(
    rank: int, name: str, forbidding: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(ME, timeout=60.0) as group:
        with monkeypatch.context() as patch:
            if rank in forbidding:
                patch.setenv("SHIM_ALLOW_PICKLE", "0")
            expected: type[ShimError] = UnsupportedError if rank in forbidding else MismatchError
            with pytest.raises(expected, match="SHIM_ALLOW_PICKLE is 0"):
                EXCHANGES[name](group)
        assert objects.all_gather(ME, group, rank) == [0, 1]


@pytest.mark.ranks(2)
def test_objects_to_one_rank_can_be_forbidden(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with world(ME, timeout=60.0) as group:
        if rank == 0:
            monkeypatch.setenv("SHIM_ALLOW_PICKLE", "0")
            with pytest.raises(UnsupportedError, match=r"SHIM_ALLOW_PICKLE is 0 \(rank 0 of 2"):
                objects.send(ME, group, [1], 1)
            with pytest.raises(UnsupportedError, match="SHIM_ALLOW_PICKLE is 0"):
                objects.receive(ME, group, 1, 1)
            return
        with pytest.raises(MismatchError, match="rank 0 has not sent its objects"):
            objects.receive(ME, group, 1, 0)


def test_what_neither_allows_nor_forbids_objects_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIM_ALLOW_PICKLE", "no")
    with pytest.raises(ArgumentError, match="SHIM_ALLOW_PICKLE must be 0 or 1, got 'no'"):
        objects.check_allowed()
