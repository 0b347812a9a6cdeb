"""The object collectives of the torch frontend."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_world import world
from wrong_calls import assert_refused, assert_refused_on_one, named

import shim.frontends.torch.distributed as dist
from shim.errors import MismatchError, ShimError, UnsupportedError


def thing(rank: int) -> dict[str, Any]:
    """Objects of very different sizes."""
    return {"rank": rank, "data": list(range(rank * 1000)), "none": None}


@pytest.mark.ranks(3)
def test_broadcast_object_list(rank: int, world_size: int) -> None:
    with world():
        for src in range(world_size):
            mine = [thing(rank), f"of {rank}", torch.arange(rank)]
            items = list(mine)
            assert dist.broadcast_object_list(items, src, device="cpu") is None
            assert items[:2] == [thing(src), f"of {src}"]
            assert torch.equal(items[2], torch.arange(src))
            assert (items[0] is mine[0]) == (rank == src)
        items = [rank]
        dist.broadcast_object_list(items, device=torch.device("cpu"))
        assert items == [0]


@pytest.mark.ranks(3)
def test_objects_from_any_rank(rank: int, world_size: int) -> None:
    with world():
        if rank > 0:
            dist.send_object_list([thing(rank), rank], 0)
            return
        seen = []
        for _ in range(2):
            slots: list[Any] = [None, None]
            source = dist.recv_object_list(slots)
            assert slots == [thing(source), source]
            seen.append(source)
        assert sorted(seen) == [1, 2]


@pytest.mark.ranks(3)
def test_objects_in_a_subgroup(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group([2, 0], sort_ranks=False)
        if rank == 1:
            assert_outside(group)
            return
        slots = [None] * 2 if rank == 0 else None
        dist.gather_object(rank, slots, dst=0, group=group)
        assert slots == ([2, 0] if rank == 0 else None)
        slots = [None, None]
        dist.all_gather_object(slots, rank, group)
        assert slots == [2, 0]
        items = [rank]
        dist.broadcast_object_list(items, group=group, group_src=0)
        assert items == [2]
        dist.scatter_object_list(items, ["a", "b"] if rank == 2 else None, 2, group)
        assert items == ["a" if rank == 2 else "b"]
        if rank == 0:
            dist.send_object_list(["hello"], group_dst=0, group=group)
        else:
            assert dist.recv_object_list(items, group_src=1, group=group) == 0
            assert items == ["hello"]


def assert_outside(group: Any) -> None:
    """Outside the group every function warns, sends nothing and changes nothing."""
    slots = ["kept", "kept"]
    for call, answer in (
        (lambda: dist.gather_object(1, slots, 0, group), None),
        (lambda: dist.all_gather_object(slots, 1, group), None),
        (lambda: dist.broadcast_object_list(slots, 0, group), None),
        (lambda: dist.scatter_object_list(slots, [1, 2], 0, group), None),
        (lambda: dist.send_object_list(slots, 0, group), None),
        (lambda: dist.recv_object_list(slots, 0, group), -1),
    ):
        with pytest.warns(UserWarning, match="rank 1 does not belong"):
            assert call() == answer
        assert slots == ["kept", "kept"]


def gathered(rank: int, n: int) -> Any:
    """To rank 1, which is the wrong one in a call that only one rank makes."""
    return dist.gather_object(1, None, dst=1)


def gathered_to_0(rank: int, n: int) -> Any:
    return dist.gather_object(1, [None] * n if rank == 0 else None)


def sent_by_0(rank: int, n: int) -> Any:
    return dist.broadcast_object_list([1], 0)


def scattered_by_0(rank: int, n: int) -> Any:
    return dist.scatter_object_list([None], [1] * n)


def scattered(rank: int, n: int) -> Any:
    return dist.scatter_object_list([None], None, src=1)


GATHERING, OUTPUTS, INPUTS = "object_gather_list", "scatter_object_output_list", "scatter_object_input_list"
# The class of error, words of its text, the wrong call, and the one that the other ranks make meanwhile.
MISTAKES: dict[str, tuple[type[Exception], str, Any, Any]] = {
    "no slots": (ValueError, GATHERING, lambda rank, n: dist.gather_object(1, None, dst=rank), gathered),
    "slots elsewhere": (
        ValueError,
        GATHERING,
        lambda rank, n: dist.gather_object(1, [None] * n, dst=(rank + 1) % n),
        gathered_to_0,
    ),
    "too few slots": (
        IndexError,
        GATHERING,
        lambda rank, n: dist.gather_object(1, [None] * (n - 1), dst=rank),
        gathered,
    ),
    "slots are a tuple": (TypeError, GATHERING, lambda rank, n: dist.gather_object(1, (None,) * n, dst=rank), gathered),
    "not picklable": (
        TypeError,
        "obj",
        lambda rank, n: dist.gather_object(lambda: 1, [None] * n if rank == 0 else None),
        gathered_to_0,
    ),
    "nothing to broadcast": (ValueError, "object_list", lambda rank, n: dist.broadcast_object_list([]), sent_by_0),
    "broadcast of a tuple": (  # into one: the root's may be a tuple
        TypeError,
        "object_list",
        lambda rank, n: dist.broadcast_object_list((1,), (rank + 1) % n),
        sent_by_0,
    ),
    "broadcast from outside": (ValueError, "9", lambda rank, n: dist.broadcast_object_list([1], 9), sent_by_0),
    "broadcast on a device": (
        UnsupportedError,
        "device",
        lambda rank, n: dist.broadcast_object_list([1], 0, device="cuda:0"),
        sent_by_0,
    ),
    "no slot to scatter to": (
        ValueError,
        OUTPUTS,
        lambda rank, n: dist.scatter_object_list([], [1] * n),
        scattered_by_0,
    ),
    "tuple to scatter to": (
        ValueError,
        OUTPUTS,
        lambda rank, n: dist.scatter_object_list((1,), [1] * n),
        scattered_by_0,
    ),
    "nothing to scatter": (
        ValueError,
        INPUTS,
        lambda rank, n: dist.scatter_object_list([None], None, src=rank),
        scattered,
    ),
    "too few to scatter": (
        ValueError,
        INPUTS,
        lambda rank, n: dist.scatter_object_list([None], [1] * (n + 1), src=rank),
        scattered,
    ),
}


@pytest.mark.ranks(3)
def test_wrong_arguments_on_every_rank_and_on_one(rank: int, world_size: int) -> None:
    with world():
        for name, (kind, words, wrong, right) in MISTAKES.items():
            with named(name):
                assert_refused(kind, words, wrong, rank, world_size)
                dist.barrier()
                assert_refused_on_one(rank, kind, wrong, right, rank, world_size)
                dist.barrier()


@pytest.mark.ranks(2)
def test_lists_of_different_lengths(rank: int, world_size: int) -> None:
    with world():
        items = ["kept"] * (rank + 1)
        with pytest.raises(MismatchError):
            dist.broadcast_object_list(items)
        assert items == ["kept"] * (rank + 1)
        dist.barrier()


SENDING: dict[str, tuple[type[Exception], str, Any]] = {
    "to oneself": (ValueError, "dst", lambda rank, n: dist.send_object_list([1], rank)),
    "from oneself": (ValueError, "src", lambda rank, n: dist.recv_object_list([1], rank)),
    "to nobody": (ValueError, "dst", lambda rank, n: dist.send_object_list([1])),
    "nothing": (ValueError, "object_list", lambda rank, n: dist.send_object_list([], (rank + 1) % n)),
    "no list": (TypeError, "object_list", lambda rank, n: dist.send_object_list(1, (rank + 1) % n)),
    "no slots": (ValueError, "object_list", lambda rank, n: dist.recv_object_list([], (rank + 1) % n)),
    "slots in a tuple": (TypeError, "object_list", lambda rank, n: dist.recv_object_list((1,), (rank + 1) % n)),
    "not picklable": (TypeError, "object_list", lambda rank, n: dist.send_object_list([lambda: 1], (rank + 1) % n)),
    "no flag": (TypeError, "use_batch", lambda rank, n: dist.send_object_list([1], (rank + 1) % n, use_batch="yes")),
    "no flag to receive": (
        TypeError,
        "use_batch",
        lambda rank, n: dist.recv_object_list([1], 1 - rank, use_batch=None),
    ),
    "device": (UnsupportedError, "device", lambda rank, n: dist.send_object_list([1], (rank + 1) % n, device=0)),
    "device of slots": (UnsupportedError, "device", lambda rank, n: dist.recv_object_list([1], 1 - rank, device="xpu")),
}


@pytest.mark.ranks(2)
def test_wrong_arguments_of_sending(rank: int, world_size: int) -> None:
    with world():
        for name, (kind, words, wrong) in SENDING.items():
            with named(name):
                assert_refused(kind, words, wrong, rank, world_size)
                dist.barrier()


@pytest.mark.ranks(2)
def test_a_receiver_is_told_that_its_sender_refused(rank: int) -> None:
    with world():
        if rank == 0:
            with pytest.raises(ShimError, match="object_list must"):
                dist.send_object_list([lambda: 1], 1)
        else:
            with pytest.raises(MismatchError, match=r"rank 0 has not sent its objects, which cannot be pickled"):
                dist.recv_object_list([None], 0)
        dist.barrier()


@pytest.mark.ranks(2)
def test_a_list_that_both_refuse_is_no_part_of_the_next(rank: int) -> None:
    with world():
        for turn, wrong in enumerate(([], 1)):
            call = dist.recv_object_list if rank else dist.send_object_list
            with pytest.raises(ShimError, match="object_list must"):
                call(wrong, 1 - rank)
            items = [None] if rank else [f"right {turn}"]
            call(items, 1 - rank)
            assert items == [f"right {turn}"]
        dist.barrier()
