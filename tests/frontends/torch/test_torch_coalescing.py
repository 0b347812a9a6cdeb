"""The coalescing manager and all_gather_coalesced of the torch frontend."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch_world import EVERY_SIZE, SIZES, check, make, numbers, world

import shim.frontends.torch.distributed as dist
from shim.errors import MismatchError, ShimError, TensorError, UnsupportedError
from shim.frontends.torch.distributed import distributed_c10d as c10d

KINDS = ("numpy", "torch")


def total(world_size: int, count: int, add: int = 0) -> Any:
    return sum(numbers(other + add, count) for other in range(world_size))


def in_a_block(*calls: Callable[[], Any], async_ops: bool = False) -> None:
    with dist._coalescing_manager(async_ops=async_ops):
        for call in calls:
            call()


@EVERY_SIZE
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


@SIZES
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


@SIZES
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


@SIZES
@pytest.mark.parametrize("async_ops", [False, True])
def test_blocks_of_different_lengths(rank: int, world_size: int, async_ops: bool) -> None:
    with world():
        calls = [functools.partial(dist.all_reduce, numbers(rank, 3)) for _ in range(2 + (rank == 1))]
        with pytest.raises(MismatchError, match="_coalescing_manager") as raised:
            in_a_block(*calls, async_ops=async_ops)
        assert "the number of calls" in str(raised.value)
        assert "rank 1: coalesced(3 calls)" in str(raised.value)
        assert_in_step(rank, world_size)
        with dist._coalescing_manager(async_ops=async_ops) as manager:
            pass
        manager.wait()


@SIZES
def test_no_call_of_a_users_meets_the_end_of_a_block(rank: int, world_size: int) -> None:
    """Not even one that moves what the ranks could compare the numbers of their calls with."""
    with world():
        for call in (
            lambda: dist.all_reduce(np.zeros(2, np.uint8), dist.ReduceOp.BOR),
            lambda: dist.barrier(),
        ):
            tensors = [numbers(rank, 3) for _ in range(2)]
            block = functools.partial(in_a_block, *(functools.partial(dist.all_reduce, tensor) for tensor in tensors))
            with pytest.raises(MismatchError, match="the operation"):
                (call if rank == 1 else block)()
            for tensor in tensors:
                check("numpy", tensor, numbers(rank, 3))
        assert_in_step(rank, world_size)


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
        with pytest.raises(ValueError, match=name) as caught:
            getattr(work, name)
        assert isinstance(caught.value, ShimError)


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


@EVERY_SIZE
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:torch 2.13 deprecates:FutureWarning")
def test_all_gather_coalesced(rank: int, world_size: int, kind: str) -> None:
    shapes = [(2, 2), (1,), (0,), ()]
    with world():
        outputs = [[make(kind, np.zeros(shape)) for shape in shapes] for _ in range(world_size)]
        inputs = [make(kind, numbers(rank + place, shape)) for place, shape in enumerate(shapes)]
        assert dist.all_gather_coalesced(outputs, inputs) is None
        for other, tensors in enumerate(outputs):
            for place, (tensor, shape) in enumerate(zip(tensors, shapes, strict=True)):
                check(kind, tensor, numbers(other + place, shape))


@pytest.mark.ranks(2)
def test_all_gather_coalesced_in_the_background_returns_a_future(rank: int, world_size: int) -> None:
    import torch

    with world():
        outputs = [[torch.zeros(2), torch.zeros(3)] for _ in range(world_size)]
        with pytest.warns(FutureWarning, match="deprecates torch.distributed.all_gather_coalesced; call"):
            future = dist.all_gather_coalesced(outputs, [torch.ones(2) * rank, torch.ones(3)], async_op=True)
        received = future.wait()
        assert [[tensor.sum().item() for tensor in tensors] for tensors in received] == [[0.0, 3.0], [2.0, 3.0]]
        assert received[1][1] is outputs[1][1]


MISTAKES: dict[str, tuple[type[Exception], str, Any]] = {
    "tuple of lists": (TypeError, "output_tensor_lists", lambda n: ((), [np.ones(2)])),
    "no list of lists": (TypeError, "output_tensor_lists", lambda n: ([np.ones(2)] * n, [np.ones(2)])),
    "too few lists": (ValueError, "output_tensor_lists", lambda n: ([[np.ones(2)]] * (n - 1), [np.ones(2)])),
    "too many tensors": (
        ValueError,
        r"output_tensor_lists\[0\]",
        lambda n: ([[np.ones(2), np.ones(2)] for _ in range(n)], [np.ones(2)]),
    ),
    "tuple of inputs": (
        TypeError,
        "input_tensor_list",
        lambda n: ([[np.ones(2)] for _ in range(n)], (np.ones(2),)),
    ),
    "nothing": (ValueError, "input_tensor_list", lambda n: ([[] for _ in range(n)], [])),
    "dtypes": (
        ValueError,
        "input_tensor_list",
        lambda n: ([[np.ones(2), np.ones(2)] for _ in range(n)], [np.ones(2), np.ones(2, int)]),
    ),
    "sizes": (ValueError, "output_tensor_lists", lambda n: ([[np.ones(3)] for _ in range(n)], [np.ones(2)])),
}


@SIZES
@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.filterwarnings("ignore:torch 2.13 deprecates:FutureWarning")
def test_wrong_arguments_of_all_gather_coalesced(rank: int, world_size: int, name: str) -> None:
    kind, words, wrong = MISTAKES[name]
    with world():
        with pytest.raises(kind, match=words) as caught:
            dist.all_gather_coalesced(*wrong(world_size))
        assert isinstance(caught.value, ShimError)
        dist.barrier()
        with pytest.raises(kind if rank == 1 else MismatchError):
            dist.all_gather_coalesced(
                *(wrong(world_size) if rank == 1 else ([[np.ones(2)] for _ in range(world_size)], [np.ones(2)]))
            )
        dist.barrier()


def in_front(options: Any) -> Any:
    options.asyncOp = False
    return options


def lists_for(tensors: list[Any], world_size: int) -> list[list[Any]]:
    return [[np.zeros(2) for _ in tensors] for _ in range(world_size)]


def places_for(tensors: list[Any], world_size: int) -> list[Any]:
    return [np.zeros(2 * world_size) for _ in tensors]


# Each call takes the rank's list of tensors, (2) each, and the world size.
TOGETHER: dict[str, Callable[[list[Any], int], Any]] = {
    "all_reduce": lambda tensors, n: dist.all_reduce_coalesced(tensors),
    "all_reduce in the background": lambda tensors, n: dist.all_reduce_coalesced(tensors, async_op=True).wait(),
    "all_gather": lambda tensors, n: dist.all_gather_coalesced(lists_for(tensors, n), tensors),
    "all_gather in the background": lambda tensors, n: dist.all_gather_coalesced(
        lists_for(tensors, n), tensors, async_op=True
    ).wait(),
    "method": lambda tensors, n: dist.group.WORLD.allreduce_coalesced(tensors).wait(),
    "method in front": lambda tensors, n: dist.group.WORLD.allreduce_coalesced(
        tensors, in_front(c10d.AllreduceCoalescedOptions())
    ),
    "method of lists": lambda tensors, n: dist.group.WORLD.allgather_coalesced(lists_for(tensors, n), tensors).wait(),
    "method of single outputs": lambda tensors, n: dist.group.WORLD.all_gather_single_coalesced(
        places_for(tensors, n), tensors
    ).wait(),
    "method of single inputs": lambda tensors, n: dist.group.WORLD.reduce_scatter_single_coalesced(
        tensors, places_for(tensors, n)
    ).wait(),
}


@SIZES
@pytest.mark.filterwarnings("ignore:torch 2.13 deprecates:FutureWarning")
@pytest.mark.parametrize("form", TOGETHER)
def test_lists_of_different_lengths(rank: int, world_size: int, form: str) -> None:
    """Every rank is told, no tensor is written, and none meets a later collective."""
    import torch  # noqa: F401  # the futures are torch's

    with world():
        tensors = [numbers(rank + place, 2) for place in range(3 if rank == 1 else 2)]
        with pytest.raises(RuntimeError, match="coalesced"):
            TOGETHER[form](tensors, world_size)
        for place, tensor in enumerate(tensors):
            check("numpy", tensor, numbers(rank + place, 2))
        assert_in_step(rank, world_size)


@SIZES
@pytest.mark.filterwarnings("ignore:torch 2.13 deprecates:FutureWarning")
@pytest.mark.parametrize("form", TOGETHER)
@pytest.mark.parametrize("place", [0, 2])
def test_a_wrong_tensor_in_a_list(rank: int, world_size: int, form: str, place: int) -> None:
    """Its rank refuses it once, and the other ranks' lists are not begun."""
    import torch  # noqa: F401  # the futures are torch's

    with world():
        tensors: list[Any] = [numbers(rank + place, 2) for place in range(3)]
        if rank == 1:
            tensors[place] = object()
        with pytest.raises(TensorError if rank == 1 else MismatchError, match="coalesced"):
            TOGETHER[form](tensors, world_size)
        assert_in_step(rank, world_size)


def assert_in_step(rank: int, world_size: int) -> None:
    """Reduce as often as the longest list is long, so that whatever is left of it would be met."""
    for add in range(4):
        dist.all_reduce(tensor := numbers(rank + add, 2))
        check("numpy", tensor, total(world_size, 2, add))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("form", ["all_gather", "gather", "all_to_all"])
def test_a_tensor_that_is_an_output_twice(rank: int, world_size: int, form: str) -> None:
    """Every rank would write into it; only empty ones may be given twice."""
    calls = {
        "all_gather": lambda outputs, size: dist.all_gather(outputs, np.ones(size)),
        "gather": lambda outputs, size: dist.gather(np.ones(size), outputs if rank == 0 else None),
        "all_to_all": lambda outputs, size: dist.all_to_all(outputs, [np.ones(size) for _ in range(world_size)]),
    }
    with world():
        calls[form]([np.zeros(0)] * world_size, 0)
        with pytest.raises(ValueError if rank == 0 or form != "gather" else MismatchError, match="the same at 0 and 1"):
            calls[form]([np.zeros(2)] * world_size, 2)
        dist.barrier()
