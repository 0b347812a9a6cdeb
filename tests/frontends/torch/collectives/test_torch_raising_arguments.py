"""Arguments whose own methods raise: their error on that rank, and the others are told; the group goes on."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from torch_world import assert_usable, world

import shim.frontends.torch.distributed as dist
from shim.errors import MismatchError, ShimError

ONE = np.ones(2)


class Raising:
    """Whatever is asked of it, by a conversion or as a tensor, is *error*."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __bool__(self) -> bool:
        raise self.error

    def __index__(self) -> int:
        raise self.error

    def __repr__(self) -> str:
        raise self.error

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: Any) -> Any:
        raise self.error


RAISES: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda it: dist.all_reduce(it),
    "root": lambda it: dist.broadcast(np.ones(2), it),
    "root in the group": lambda it: dist.broadcast(np.ones(2), group_src=it),
    "op": lambda it: dist.all_reduce(np.ones(2), op=it),
    "device_ids": lambda it: dist.barrier(device_ids=it),
    "async_op": lambda it: dist.all_reduce(np.ones(2), async_op=it),
    "async_op of a barrier": lambda it: dist.barrier(async_op=it),
    "async_op of a list": lambda it: dist.all_gather([np.ones(2), np.ones(2)], ONE, async_op=it),
    "async_op of several": lambda it: dist.all_reduce_coalesced([np.ones(2)], async_op=it),
    "split sizes": lambda it: dist.all_to_all_single(np.ones(2), np.ones(2), [it, 1], [1, 1]),
}


RIGHT = {
    "tensor": np.ones(2),
    "root": 0,
    "root in the group": 0,
    "op": dist.ReduceOp.SUM,
    "device_ids": None,
    "split sizes": 1,
}


@pytest.mark.filterwarnings("ignore:torch deprecates")
@pytest.mark.ranks(2)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, SystemExit], ids=lambda error: error.__name__)
@pytest.mark.parametrize("name", RAISES)
def test_what_an_argument_itself_raises_is_told_to_the_others(
    rank: int, world_size: int, name: str, error: type[BaseException]
) -> None:
    right = RIGHT.get(name, False)
    with world():
        if rank == 1:
            with pytest.raises((error, ShimError)):
                RAISES[name](Raising(error))
        else:
            with pytest.raises(MismatchError, match="rank 1: refused: "):
                RAISES[name](right)
        assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_an_array_is_no_truth(rank: int, world_size: int) -> None:
    with world():
        with pytest.raises(ValueError if rank == 1 else MismatchError, match="truth value of an array"):
            dist.all_reduce(np.ones(2), async_op=np.ones(2) if rank == 1 else False)
        assert_usable(rank, world_size)


class Listed(list[Any]):
    """A list that iterates over other items than it holds."""

    def __init__(self, held: list[Any], iterated: list[Any]) -> None:
        super().__init__(held)
        self.iterated = iterated

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterated)


class Unmeasured(list[Any]):
    def __len__(self) -> int:
        raise KeyboardInterrupt


class Shapeless:
    @property
    def shape(self) -> Any:
        raise KeyboardInterrupt


@pytest.mark.ranks(2)
@pytest.mark.parametrize("gather", [dist.all_gather, dist.all_to_all], ids=lambda gather: gather.__name__)
def test_what_is_written_is_what_a_list_iterates_over(rank: int, world_size: int, gather: Callable[..., Any]) -> None:
    one, other = np.zeros(2), np.zeros(2)
    given = ONE if gather is dist.all_gather else [ONE, ONE]
    with world():
        with pytest.raises(ValueError if rank == 1 else MismatchError, match="the same at 0 and 1"):
            gather(Listed([one, other], [one, one]) if rank == 1 else [one, other], given)
        gather(Listed([one, one], [one, other]) if rank == 1 else [one, other], given)
        assert one.tolist() == other.tolist() == [1.0, 1.0]
        assert_usable(rank, world_size)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("name", ["length", "items", "shape"])
def test_what_a_list_or_its_items_raise_is_told_to_the_others(rank: int, world_size: int, name: str) -> None:
    places = [np.zeros(2), np.zeros(2)]
    shapeless = Shapeless()
    calls: dict[str, Callable[[], Any]] = {
        "length": lambda: dist.gather(ONE, Unmeasured(places) if rank == 1 else None, dst=1),
        "items": lambda: dist.all_gather(Unmeasured(places) if rank == 1 else places, ONE),
        "shape": lambda: dist.all_gather([shapeless, shapeless] if rank == 1 else places, ONE),
    }
    with world():
        with pytest.raises(KeyboardInterrupt if rank == 1 else MismatchError):
            calls[name]()
        assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_an_op_that_raises_keeps_no_tensor(rank: int) -> None:
    with world():
        gc.collect()
        gc.disable()
        try:
            array = np.ones(3)
            there = weakref.ref(array)
            with pytest.raises(KeyboardInterrupt if rank == 1 else MismatchError):
                dist.all_reduce(array, op=Raising(KeyboardInterrupt) if rank == 1 else dist.ReduceOp.SUM)
            del array
            assert there() is None
        finally:
            gc.enable()
