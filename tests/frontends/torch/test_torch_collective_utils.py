"""torch.distributed.collective_utils: what fails on one rank is raised on all."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from torch_world import world

import shim.frontends.torch.distributed as dist
from shim.errors import MismatchError, ShimError
from shim.frontends.torch.distributed import collective_utils as utils


class TwoArgumentsError(Exception):
    """Pickles, and cannot be made again of what was pickled."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} in {where}")


class LockedError(Exception):
    """Cannot be pickled."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.lock = threading.Lock()


def fail() -> None:
    raise KeyError("a reason")


def fail_with_two_arguments() -> None:
    raise TwoArgumentsError("a reason", "a place")


def fail_with_a_lock() -> None:
    raise LockedError("a reason")


@pytest.mark.ranks(1, 3)
def test_broadcast(rank: int, world_size: int) -> None:
    with world():
        pg = dist.group.WORLD
        called: list[int] = []
        for root in range(world_size):
            assert utils.broadcast(f"of {rank}", rank=root, pg=pg) == f"of {root}"
            assert utils.broadcast(lambda: called.append(rank) or rank, rank=root, pg=pg) == root
        assert called == [rank]
        if rank != 0:
            assert utils.broadcast(lambda: called.append(rank), pg=pg) is None
        else:
            assert utils.broadcast(None, pg=pg) is None
        assert called == [rank]


@pytest.mark.ranks(3)
def test_broadcast_in_a_subgroup(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group([2, 1], sort_ranks=False)
        if rank > 0:
            assert utils.broadcast(rank, pg=group) == 2
            assert utils.broadcast(rank, rank=1, pg=group) == 1
            assert utils.all_gather(rank, pg=group) == [2, 1]


@pytest.mark.ranks(2)
def test_a_failure_is_broadcast(rank: int, world_size: int) -> None:
    with world():
        pg = dist.group.WORLD
        with pytest.raises(RuntimeError, match="rank 1 failed in stage 'first': KeyError: 'a reason'") as caught:
            utils.broadcast(fail, stage_name="first", rank=1, pg=pg)
        assert isinstance(caught.value, ShimError)
        assert isinstance(caught.value.__cause__, KeyError)
        with pytest.raises(RuntimeError, match="rank 0 failed"):
            utils.broadcast(None, success=rank != 0, pg=pg)
        with pytest.raises(AssertionError if rank == 0 else MismatchError):
            utils.broadcast("x", success=rank != 0, pg=pg)
        assert utils.broadcast(rank, pg=pg) == 0


@pytest.mark.ranks(3)
@pytest.mark.parametrize(
    ("raising", "kind"), [(fail_with_two_arguments, TwoArgumentsError), (fail_with_a_lock, LockedError)]
)
def test_an_exception_that_cannot_be_sent(rank: int, world_size: int, raising: Any, kind: type[Exception]) -> None:
    """Every rank is told what it was, and where."""
    with world():
        pg = dist.group.WORLD
        reason = f"rank 1 failed: RuntimeError: .*{kind.__name__}: a reason"
        for call in (
            lambda: utils.broadcast(raising, rank=1, pg=pg),
            lambda: utils.all_gather(raising if rank == 1 else 5, pg=pg),
        ):
            with pytest.raises(MismatchError, match=reason) as caught:
                call()
            told = caught.value.__cause__
            assert isinstance(told, RuntimeError)
            assert raising.__name__ in str(told)  # where it was raised
        assert utils.all_gather(rank, pg=pg) == list(range(world_size))


def test_alone() -> None:
    assert utils.broadcast(lambda: 5) == 5
    assert utils.broadcast(5, rank=1) is None
    assert utils.all_gather(lambda: 5) == [5]
    assert utils.all_gather("x", "stage") == ["x"]
    for call in (lambda: utils.broadcast(fail), lambda: utils.all_gather(fail)):
        with pytest.raises(RuntimeError, match="a reason"):
            call()
    with pytest.raises(AssertionError):
        utils.broadcast(5, success=False)


@pytest.mark.ranks(1, 3)
def test_all_gather(rank: int, world_size: int) -> None:
    with world():
        pg = dist.group.WORLD
        assert utils.all_gather(rank, "stage", pg) == list(range(world_size))
        assert utils.all_gather(lambda: [rank], pg=pg) == [[other] for other in range(world_size)]


@pytest.mark.ranks(3)
def test_a_failure_in_all_gather(rank: int, world_size: int) -> None:
    with world():
        pg = dist.group.WORLD
        with pytest.raises(RuntimeError, match="rank 2 failed: KeyError"):
            utils.all_gather(fail if rank == 2 else 5, pg=pg)
        with pytest.raises(RuntimeError, match=r"stage_name .*'one', 'two', 'one'"):
            utils.all_gather(rank, "two" if rank == 1 else "one", pg)
        assert utils.all_gather(rank, pg=pg) == [0, 1, 2]


@pytest.mark.ranks(2)
def test_objects_of_one_type(rank: int, world_size: int) -> None:
    with world():
        pg = dist.group.WORLD
        slots: list[Any] = [None] * world_size
        assert utils.all_gather_object_enforce_type(pg, slots, rank) is None
        assert slots == [0, 1]
        with pytest.raises(TypeError, match="one type"):
            utils.all_gather_object_enforce_type(pg, slots, rank if rank else "x")
        assert slots == ["x", 1]
        utils.all_gather_object_enforce_type(pg, slots, rank if rank else "x", lambda first, other: True)
        with pytest.raises(IndexError):
            utils.all_gather_object_enforce_type(pg, [None], rank)


def test_a_payload_is_what_it_was_made_of() -> None:
    payload = utils.SyncPayload("stage", True, 5)
    assert (payload.stage_name, payload.success, payload.payload, payload.exception) == ("stage", True, 5, None)
