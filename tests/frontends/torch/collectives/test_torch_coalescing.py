"""The coalescing manager of the torch frontend."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rank_numbers import check, make, numbers, total
from torch_world import KINDS, assert_in_step, world
from wrong_calls import assert_refused

import shim.frontends.torch.distributed as dist
from shim.errors import MismatchError, UnsupportedError
from shim.frontends.torch.distributed import distributed_c10d as c10d


def in_a_block(*calls: Callable[[], Any], async_ops: bool = False) -> None:
    with dist._coalescing_manager(async_ops=async_ops):
        for call in calls:
            call()


@pytest.mark.ranks(1, 3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("async_ops", [False, True])
def test_all_reduces_in_a_block(rank: int, world_size: int, kind: str, async_ops: bool) -> None:
    with world():
        tensors = [make(kind, numbers(rank + place, 3 + place)) for place in range(4)]
        with dist._coalescing_manager(async_ops=async_ops) as manager:
            assert isinstance(manager, c10d._CoalescingManager)
            for tensor in tensors:
                work = dist.all_reduce(tensor, async_op=async_ops)
                assert isinstance(work, c10d._IllegalWork if async_ops else type(None))
        assert len(manager.works) == int(async_ops)
        manager.wait()
        for place, tensor in enumerate(tensors):
            check(kind, tensor, total(world_size, 3 + place, place))


@pytest.mark.ranks(3)
def test_a_block_is_of_the_thread_that_enters_it(rank: int, world_size: int) -> None:
    with world():
        made: list[Any] = []
        maker = threading.Thread(target=lambda: made.append(dist._coalescing_manager(async_ops=True)))
        maker.start()
        maker.join()
        tensor = numbers(rank, 3)
        with made[0] as manager:
            assert isinstance(dist.all_reduce(tensor, async_op=True), c10d._IllegalWork)
        manager.wait()
        check("numpy", tensor, total(world_size, 3))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("old_names", [False, True])
@pytest.mark.filterwarnings("ignore:.*renamed:FutureWarning")
def test_the_other_functions_in_a_block(rank: int, world_size: int, old_names: bool) -> None:
    all_gather = dist.all_gather_into_tensor if old_names else dist.all_gather_single
    reduce_scatter = dist.reduce_scatter_tensor if old_names else dist.reduce_scatter_single
    with world():
        gathered = [np.zeros(2 * world_size) for _ in range(2)]
        with dist._coalescing_manager():
            for output in gathered:
                all_gather(output, numbers(rank, 2))
        for output in gathered:
            check("numpy", output, np.concatenate([numbers(other, 2) for other in range(world_size)]))
        scattered = [np.zeros(2) for _ in range(2)]
        with dist._coalescing_manager(async_ops=True) as manager:
            for output in scattered:
                reduce_scatter(output, numbers(rank, 2 * world_size), async_op=True)
        manager.wait()
        for output in scattered:
            check("numpy", output, total(world_size, 2 * world_size)[2 * rank : 2 * rank + 2])


@pytest.mark.ranks(3)
def test_a_block_is_of_one_group(rank: int, world_size: int) -> None:
    """Calls of another group, and functions that are not coalesced, end at once."""
    with world():
        group = dist.new_group([0, 2])
        with dist._coalescing_manager(async_ops=True) as manager:
            dist.all_reduce(inside := numbers(rank, 3))
            dist.broadcast(moved := numbers(rank, 2), 1)
            check("numpy", moved, numbers(1, 2))
            if rank != 1:
                dist.all_reduce(outside := numbers(rank, 3), group=group)
                check("numpy", outside, numbers(0, 3) + numbers(2, 3))
        manager.wait()
        check("numpy", inside, total(world_size, 3))


@pytest.mark.ranks(2)
def test_every_call_has_its_own_op(rank: int, world_size: int) -> None:
    with world():
        with dist._coalescing_manager():
            dist.all_reduce(largest := numbers(rank, 3), dist.ReduceOp.MAX)
            dist.all_reduce(summed := numbers(rank, 3))
        check("numpy", largest, np.max([numbers(other, 3) for other in range(world_size)], axis=0))
        check("numpy", summed, total(world_size, 3))


@pytest.mark.ranks(2)
def test_calls_of_two_kinds_in_a_block(rank: int, world_size: int) -> None:
    with world():
        with pytest.raises(RuntimeError, match="all_gather_single, all_reduce"):
            in_a_block(
                lambda: dist.all_reduce(numbers(rank, 3)),
                lambda: dist.all_gather_single(np.zeros(2 * world_size), numbers(rank, 2)),
            )
        dist.all_reduce(tensor := numbers(rank, 3))
        check("numpy", tensor, total(world_size, 3))


@pytest.mark.ranks(3)
@pytest.mark.filterwarnings("ignore:.*does not belong:UserWarning")
@pytest.mark.parametrize("async_ops", [False, True])
def test_blocks_of_groups_that_a_rank_is_outside_of(rank: int, world_size: int, async_ops: bool) -> None:
    with world():
        pair, other = dist.new_group([0, 1]), dist.new_group([1, 0], sort_ranks=False)
        first, second = numbers(rank, 3), numbers(rank + 1, 3)
        with (
            dist._coalescing_manager(pair, async_ops=async_ops) as outer,
            dist._coalescing_manager(other, async_ops=async_ops) as inner,
        ):
            dist.all_reduce(first, group=pair, async_op=async_ops)
            dist.all_reduce(second, group=other, async_op=async_ops)
        for works in (outer, inner):
            works.wait()
            assert len(works.works) == int(async_ops and rank < 2)
        check("numpy", first, total(2, 3) if rank < 2 else numbers(rank, 3))
        check("numpy", second, total(2, 3, 1) if rank < 2 else numbers(rank + 1, 3))


@pytest.mark.ranks(2)
def test_a_block_is_of_its_thread(rank: int, world_size: int) -> None:
    with world():
        mine, others = numbers(rank, 3), numbers(rank + 1, 3)
        with dist._coalescing_manager():
            dist.all_reduce(mine)
            beside = threading.Thread(target=dist.all_reduce, args=(others,))
            beside.start()
            beside.join()
            check("numpy", others, total(world_size, 3, 1))
            check("numpy", mine, numbers(rank, 3))
        check("numpy", mine, total(world_size, 3))


@pytest.mark.ranks(2)
def test_a_block_in_a_block_of_the_same_group(rank: int, world_size: int) -> None:
    with world():
        with dist._coalescing_manager() as manager:
            with pytest.raises(ValueError, match="open already"), dist._coalescing_manager():
                pass
            dist.all_reduce(tensor := numbers(rank, 3))
        assert manager.works == []
        check("numpy", tensor, total(world_size, 3))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("place", [0, 1, 3])
def test_an_error_in_a_block(rank: int, world_size: int, place: int) -> None:
    """What one rank refuses is told to all once, and no call of the block is begun."""
    with world():
        tensors: list[Any] = [numbers(rank + add, 3) for add in range(4)]
        if rank == 0:
            tensors[place] = "x"
        with pytest.raises(TypeError if rank == 0 else MismatchError):
            in_a_block(*(functools.partial(dist.all_reduce, tensor) for tensor in tensors))
        for add in set(range(4)) - {place}:
            check("numpy", tensors[add], numbers(rank + add, 3))
        assert_in_step(rank, world_size)
        with dist._coalescing_manager():
            dist.all_reduce(tensor := numbers(rank, 3))
        check("numpy", tensor, total(world_size, 3))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("wrong", [{"tensor": "x"}, {"op": "x"}])
def test_a_refused_call_that_a_block_goes_on_after(rank: int, world_size: int, wrong: dict[str, Any]) -> None:
    """Its others do not begin, as those of the other ranks do not, and the ranks stay in step."""
    with world():
        tensors = [numbers(rank + add, 3) for add in range(2)]
        made = functools.partial(in_a_block, *(functools.partial(dist.all_reduce, tensor) for tensor in tensors))
        if rank == 1:
            block = dist._coalescing_manager()
            block.__enter__()
            dist.all_reduce(tensors[0])
            with pytest.raises(TypeError):
                dist.all_reduce(**{"tensor": tensors[1], **wrong})
            with pytest.raises(RuntimeError, match="so none of them begins"):
                dist.all_reduce(**{"tensor": tensors[1], **wrong})  # nobody is told again
            made = functools.partial(block.__exit__, None, None, None)
        with pytest.raises(RuntimeError, match="so none of them begins" if rank == 1 else "refused"):
            made()
        for add, tensor in enumerate(tensors):
            check("numpy", tensor, numbers(rank + add, 3))
        assert_in_step(rank, world_size)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("async_ops", [False, True])
def test_blocks_of_different_lengths(rank: int, world_size: int, async_ops: bool) -> None:
    with world():
        calls = [functools.partial(dist.all_reduce, numbers(rank, 3)) for _ in range(2 + (rank == 1))]
        with pytest.raises(MismatchError, match="_coalescing_manager") as raised:
            in_a_block(*calls, async_ops=async_ops)
        assert "rank 1: 3 coalesced calls, at " in str(raised.value)
        assert_in_step(rank, world_size)
        with dist._coalescing_manager(async_ops=async_ops) as manager:
            pass
        manager.wait()


@pytest.mark.ranks(3)
def test_no_call_of_a_users_meets_the_end_of_a_block(rank: int, world_size: int) -> None:
    """Not even one that moves what the ranks could compare the numbers of their calls with."""
    with world():
        for call in (
            lambda: dist.all_reduce(np.zeros(2, np.uint8), dist.ReduceOp.BOR),
            lambda: dist.barrier(),
        ):
            tensors = [numbers(rank, 3) for _ in range(2)]
            block = functools.partial(in_a_block, *(functools.partial(dist.all_reduce, tensor) for tensor in tensors))
            with pytest.raises(MismatchError, match="disagree on the operation"):
                (call if rank == 1 else block)()
            for tensor in tensors:
                check("numpy", tensor, numbers(rank, 3))
        assert_in_step(rank, world_size)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("async_ops", [False, True])
def test_a_block_that_is_entered_again_begins_anew(rank: int, world_size: int, async_ops: bool) -> None:
    with world():
        block, tensors = dist._coalescing_manager(async_ops=async_ops), [numbers(rank, 3) for _ in range(3)]
        with block:
            dist.all_reduce(tensors[0])
        block.__enter__()
        dist.all_reduce(unfinished := numbers(rank, 3))
        block.__exit__(KeyError, KeyError(), None)  # as where the block raises
        for tensor in tensors[1:]:
            with block as manager:
                dist.all_reduce(tensor)
            manager.wait()
        check("numpy", unfinished, numbers(rank, 3))
        for tensor in tensors:
            check("numpy", tensor, total(world_size, 3))


@pytest.mark.ranks(1)
def test_what_a_block_refuses(rank: int, world_size: int) -> None:
    with world():
        with pytest.raises(UnsupportedError, match="device"):
            dist._coalescing_manager(device="cpu")
        with pytest.raises(UnsupportedError):
            c10d._time_estimator()


def test_the_work_of_one_call_in_a_block_is_no_work() -> None:
    work = c10d._IllegalWork()
    assert isinstance(work, dist.Work)
    for name in ("wait", "is_success", "exception", "source_rank", "_source_rank", "result", "synchronize"):
        assert_refused(ValueError, name, getattr, work, name)


def test_a_manager_waits_for_what_is_appended() -> None:
    waited = []

    class Started:
        def wait(self) -> None:
            waited.append(self)

    manager = c10d._CoalescingManager()
    works = [Started(), Started()]
    for work in works:
        manager.append(work)
    manager.append()
    manager.wait()
    assert waited == works


def test_a_call_keeps_what_it_is_given() -> None:
    call = c10d._CollOp(dist.all_reduce, 1, 2, dist.ReduceOp.SUM, 3)
    assert (call.op, call.tensor, call.dst_tensor, call.redop, call.root) == (
        dist.all_reduce,
        1,
        2,
        dist.ReduceOp.SUM,
        3,
    )
