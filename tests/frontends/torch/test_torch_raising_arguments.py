"""Arguments whose own methods raise: their error on that rank, and the others are told; the group goes on."""

from __future__ import annotations

from collections.abc import Callable
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


@pytest.mark.filterwarnings("ignore:torch 2.13 deprecates")
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
