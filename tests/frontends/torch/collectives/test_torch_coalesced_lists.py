"""Lists of tensors that are reduced or gathered together, and tensors that are in a list twice, in the torch frontend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from rank_numbers import check, make, numbers
from torch_world import KINDS, assert_in_step, world
from wrong_calls import assert_refused, assert_refused_on_one, named

import shim.frontends.torch.distributed as dist
from shim.errors import MismatchError, TensorError
from shim.frontends.torch.distributed import distributed_c10d as c10d


@pytest.mark.ranks(1, 3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:torch deprecates:FutureWarning")
def test_all_gather_coalesced(rank: int, world_size: int, kind: str) -> None:
    shapes = [(2, 2), (1,), (0,), ()]
    with world():
        outputs = [[make(kind, np.zeros(shape)) for shape in shapes] for _ in range(world_size)]
        inputs = [make(kind, numbers(rank + place, shape)) for place, shape in enumerate(shapes)]
        assert dist.all_gather_coalesced(outputs, inputs) is None
        for other, tensors in enumerate(outputs):
            for place, (tensor, shape) in enumerate(zip(tensors, shapes, strict=True)):
                check(kind, tensor, numbers(other + place, shape))


@pytest.mark.ranks(3)
@pytest.mark.parametrize(("real", "complex_"), [(np.float32, np.complex64), (np.float64, np.complex128)])
@pytest.mark.filterwarnings("ignore:torch deprecates:FutureWarning")
def test_complex_numbers_go_with_their_parts(rank: int, world_size: int, real: Any, complex_: Any) -> None:
    dtypes = (real, complex_, real)

    def given(other: int) -> list[Any]:
        return [numbers(other + place, (3,)).astype(dtype) * (1 + other * 1j if dtype is complex_ else 1) for place, dtype in enumerate(dtypes)]  # fmt: skip

    with world():
        sums = [sum(given(other)[place] for other in range(world_size)) for place in range(3)]
        for async_op in (False, True):
            tensors = [make("torch", tensor) for tensor in given(rank)]
            future = dist.all_reduce_coalesced(tensors, async_op=async_op)
            if async_op:
                future.wait()
            for tensor, total in zip(tensors, sums, strict=True):
                check("torch", tensor, total)
        outputs = [[make("torch", tensor * 0) for tensor in given(rank)] for _ in range(world_size)]
        dist.all_gather_coalesced(outputs, [make("torch", tensor) for tensor in given(rank)])
        for other, column in enumerate(outputs):
            for tensor, part in zip(column, given(other), strict=True):
                check("torch", tensor, part)
        with pytest.raises(ValueError, match="tensors must hold tensors of one dtype"):
            dist.all_reduce_coalesced([make("torch", np.ones(2, np.float32)), make("torch", np.ones(2, np.complex128))])


@pytest.mark.ranks(2)
def test_all_gather_coalesced_in_the_background_returns_a_future(rank: int, world_size: int) -> None:
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


def gathered(n: int) -> Any:
    return [[np.ones(2)] for _ in range(n)], [np.ones(2)]


@pytest.mark.ranks(3)
@pytest.mark.filterwarnings("ignore:torch deprecates:FutureWarning")
def test_wrong_arguments_of_all_gather_coalesced(rank: int, world_size: int) -> None:
    with world():
        for name, (kind, words, wrong) in MISTAKES.items():
            with named(name):
                assert_refused(kind, words, dist.all_gather_coalesced, *wrong(world_size))
                dist.barrier()
                given = (wrong if rank == 1 else gathered)(world_size)
                assert_refused_on_one(rank, kind, dist.all_gather_coalesced, dist.all_gather_coalesced, *given)
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


@pytest.mark.ranks(3)
@pytest.mark.filterwarnings("ignore:torch deprecates:FutureWarning")
@pytest.mark.parametrize("form", TOGETHER)
def test_lists_of_different_lengths(rank: int, world_size: int, form: str) -> None:
    """Every rank is told, no tensor is written, and none meets a later collective."""
    with world():
        tensors = [numbers(rank + place, 2) for place in range(3 if rank == 1 else 2)]
        with pytest.raises(RuntimeError, match="coalesced"):
            TOGETHER[form](tensors, world_size)
        for place, tensor in enumerate(tensors):
            check("numpy", tensor, numbers(rank + place, 2))
        assert_in_step(rank, world_size)


@pytest.mark.ranks(3)
@pytest.mark.filterwarnings("ignore:torch deprecates:FutureWarning")
@pytest.mark.parametrize("form", TOGETHER)
@pytest.mark.parametrize("place", [0, 2])
def test_a_wrong_tensor_in_a_list(rank: int, world_size: int, form: str, place: int) -> None:
    """Its rank refuses it once, and the other ranks' lists are not begun."""
    with world():
        tensors: list[Any] = [numbers(rank + place, 2) for place in range(3)]
        if rank == 1:
            tensors[place] = object()
        with pytest.raises(TensorError if rank == 1 else MismatchError, match="coalesced"):
            TOGETHER[form](tensors, world_size)
        assert_in_step(rank, world_size)


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


def in_a_block(*calls: Callable[[], Any]) -> None:
    with dist._coalescing_manager():
        for call in calls:
            call()


# Each reduces every view of the same memory.
REDUCED: dict[str, Callable[[list[Any]], Any]] = {
    "function": dist.all_reduce_coalesced,
    "function in the background": lambda views: dist.all_reduce_coalesced(views, async_op=True).wait(),
    "block": lambda views: in_a_block(*(lambda each=each: dist.all_reduce(each) for each in views)),  # type: ignore[misc]
    "method": lambda views: dist.group.WORLD.allreduce_coalesced(views).wait(),
}


@pytest.mark.ranks(3)
@pytest.mark.filterwarnings("ignore:torch deprecates:FutureWarning")
@pytest.mark.parametrize("form", REDUCED)
def test_tensors_of_a_list_that_share_memory_are_reduced_once(rank: int, world_size: int, form: str) -> None:
    with world():
        x = torch.arange(8.0) + 10 * rank
        REDUCED[form]([x, x, x[:4], x[2:], x.view(2, 4).t(), x[::2]])
        assert x.tolist() == [world_size * place + 10 * sum(range(world_size)) for place in range(8)]


@pytest.mark.ranks(3)
def test_single_tensors_of_a_block_that_share_memory(rank: int, world_size: int) -> None:
    """As in torch, every call reads what was there before the block, and the last one's output stays."""
    with world():
        x = torch.arange(2.0 * world_size) + 10 * rank
        parts = (x[:2], x[2:4])
        in_a_block(*(lambda part=part: dist.all_gather_single(x, part) for part in parts))  # type: ignore[misc]
        assert x.tolist() == [10.0 * other + place for other in range(world_size) for place in (2, 3)]
        x = torch.arange(2.0 * world_size) + 10 * rank
        summed = sum(torch.arange(2.0 * world_size) + 10 * other for other in range(world_size))
        wanted = torch.cat([summed[2 * rank : 2 * rank + 2]] * 2 + [x[4:]])
        in_a_block(*(lambda part=part: dist.reduce_scatter_single(part, x) for part in (x[:2], x[2:4])))  # type: ignore[misc]
        assert x.tolist() == wanted.tolist()


@pytest.mark.ranks(3)
@pytest.mark.parametrize("length", [4, 1_000_000])
def test_a_batch_that_receives_into_what_it_sends(rank: int, world_size: int, length: int) -> None:
    with world():
        x = torch.arange(float(length)) + 10 * rank
        after, before = (rank + 1) % world_size, (rank - 1) % world_size
        for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, x, before), dist.P2POp(dist.isend, x, after)]):
            work.wait()
        assert torch.equal(x, torch.arange(float(length)) + 10 * before)
