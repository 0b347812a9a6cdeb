"""reduce, reduce_scatter and the reductions of several tensors, through the torch frontend."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from rank_numbers import check, everyone, make, numbers, total
from torch_world import KINDS, world
from wrong_calls import assert_refused, assert_refused_on_one, named

import shim.frontends.torch.distributed as dist
from shim.errors import MismatchError


@pytest.mark.ranks(3)
def test_reduce_in_a_subgroup(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group([2, 0], sort_ranks=False)
        for name, dst in (("dst", 0), ("group_dst", 1)):
            tensor = numbers(rank, 3)
            if rank == 1:
                with pytest.warns(UserWarning, match="rank 1 does not belong to the given group$"):
                    assert dist.reduce(tensor, group=group, **{name: dst}) is None
            else:
                work = dist.reduce(tensor, group=group, async_op=True, **{name: dst})
                assert work.wait() is True
                assert work.result()[0] is tensor
            check("numpy", tensor, numbers(0, 3) + numbers(2, 3) if rank == 0 else numbers(rank, 3))


@pytest.mark.ranks(3)
def test_reduce_scatter_with_a_size_for_each_rank(rank: int, world_size: int) -> None:
    with world():
        output = np.zeros((rank, 2))
        work = dist.reduce_scatter(output, [numbers(rank, (place, 2)) for place in range(world_size)], async_op=True)
        assert work.wait()
        check("numpy", output, sum(numbers(other, (rank, 2)) for other in range(world_size)))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", KINDS)
def test_reduce_scatter_into_an_own_input(rank: int, world_size: int, kind: str) -> None:
    with world():
        inputs = [make(kind, numbers(rank + 4 * place, 3)) for place in range(world_size)]
        dist.reduce_scatter(inputs[rank], inputs)
        check(kind, inputs[rank], sum(numbers(other + 4 * rank, 3) for other in range(world_size)))


ONE = np.ones(2)


def reduced(n: int) -> Any:
    return dist.reduce(np.ones(2), 0)


def scattered(n: int) -> Any:
    return dist.reduce_scatter(np.ones(2), [ONE] * n)


def summed(n: int) -> Any:
    return dist.all_reduce_coalesced([np.ones(2)])


MAX = dist.ReduceOp.MAX
# The class of error, words of its text, the wrong call, and the one that the other ranks make meanwhile.
MISTAKES: dict[str, tuple[type[Exception], str, Any, Any]] = {
    "no destination": (ValueError, "dst", lambda n: dist.reduce(np.ones(2)), reduced),
    "two destinations": (ValueError, "group_dst", lambda n: dist.reduce(np.ones(2), 0, group_dst=0), reduced),
    "destination outside": (ValueError, "9", lambda n: dist.reduce(np.ones(2), 9), reduced),
    "destination is text": (TypeError, "dst", lambda n: dist.reduce(np.ones(2), "0"), reduced),
    "op of reduce": (TypeError, "op", lambda n: dist.reduce(np.ones(2), 0, "sum"), reduced),
    "complex": (ValueError, "op", lambda n: dist.reduce(np.ones(2, complex), 0, MAX), reduced),
    "list to reduce": (TypeError, "tensor", lambda n: dist.reduce([ONE], 0), reduced),
    "tuple": (TypeError, "input_list", lambda n: dist.reduce_scatter(np.ones(2), (ONE,) * n), scattered),
    "too short": (ValueError, "input_list", lambda n: dist.reduce_scatter(np.ones(2), [ONE] * (n - 1)), scattered),
    "list for the output": (TypeError, "output", lambda n: dist.reduce_scatter([np.ones(2)], [ONE] * n), scattered),
    "size": (ValueError, "output", lambda n: dist.reduce_scatter(np.ones(3), [ONE] * n), scattered),
    "dtype": (ValueError, "output", lambda n: dist.reduce_scatter(np.ones(2, int), [ONE] * n), scattered),
    "op": (TypeError, "op", lambda n: dist.reduce_scatter(np.ones(2), [ONE] * n, 0), scattered),
    "coalesced tuple": (TypeError, "tensors", lambda n: dist.all_reduce_coalesced((np.ones(2),)), summed),
    "coalesced nothing": (ValueError, "tensors", lambda n: dist.all_reduce_coalesced([]), summed),
    "dtypes": (ValueError, "one dtype", lambda n: dist.all_reduce_coalesced([np.ones(2), np.ones(2, int)]), summed),
    "no tensor": (TypeError, "tensors", lambda n: dist.all_reduce_coalesced([1, 2]), summed),
    "coalesced op": (TypeError, "op", lambda n: dist.all_reduce_coalesced([np.ones(2)], "sum"), summed),
    "coalesced complex": (ValueError, "op", lambda n: dist.all_reduce_coalesced([np.ones(2, complex)], MAX), summed),
}


@pytest.mark.ranks(3)
@pytest.mark.filterwarnings("ignore:torch deprecates:FutureWarning")
def test_wrong_arguments_on_every_rank_and_on_one(rank: int, world_size: int) -> None:
    with world():
        for name, (kind, words, wrong, right) in MISTAKES.items():
            with named(name):
                assert f"rank {rank} of {world_size}" in assert_refused(kind, words, wrong, world_size)
                dist.barrier()
                assert_refused_on_one(rank, kind, wrong, right, world_size)
                dist.barrier()


@pytest.mark.ranks(3)
def test_ranks_that_disagree(rank: int, world_size: int) -> None:
    """On the root, the op or the size: every rank is told, and no tensor is written."""
    with world():
        for call in (
            lambda tensor: dist.reduce(tensor, int(rank == 1)),
            lambda tensor: dist.reduce(tensor, 0, dist.ReduceOp.MAX if rank == 1 else dist.ReduceOp.SUM),
            lambda tensor: dist.reduce_scatter(
                tensor, [np.ones(2)] * 3, [dist.ReduceOp.SUM, dist.ReduceOp.MIN][rank % 2]
            ),
        ):
            tensor = numbers(rank, 2)
            with pytest.raises(MismatchError):
                call(tensor)
            check("numpy", tensor, numbers(rank, 2))
        dist.barrier()


@pytest.mark.ranks(2)
def test_the_old_names_warn_and_work(rank: int, world_size: int) -> None:
    with world():
        for name in ("reduce_scatter_tensor", "_reduce_scatter_base"):
            output = np.zeros(2)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                getattr(dist, name)(output, numbers(rank, 2 * world_size))
            assert [one.filename for one in caught] == [__file__] * name.startswith("_")
            check("numpy", output, total(world_size, 2 * world_size)[2 * rank : 2 * rank + 2])
        for name in ("all_gather_into_tensor", "_all_gather_base"):
            output = np.zeros(2 * world_size)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                getattr(dist, name)(output, numbers(rank, 2))
            assert [one.filename for one in caught] == [__file__] * name.startswith("_")
            check("numpy", output, np.concatenate(everyone(world_size, 2)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_all_reduce_coalesced(rank: int, world_size: int, kind: str) -> None:
    shapes = [(2, 3), (), (0,), (5,)]
    with world():
        tensors = [make(kind, numbers(rank + place, shape)) for place, shape in enumerate(shapes)]
        with pytest.warns(FutureWarning, match="deprecates torch.distributed.all_reduce_coalesced; call"):
            assert dist.all_reduce_coalesced(tensors, dist.ReduceOp.MAX) is None
        for place, (tensor, shape) in enumerate(zip(tensors, shapes, strict=True)):
            check(kind, tensor, np.max([numbers(other + place, shape) for other in range(world_size)], axis=0))
        single = make(kind, numbers(rank, 3))
        with pytest.warns(FutureWarning):
            dist.all_reduce_coalesced(single)
        check(kind, single, sum(numbers(other, 3) for other in range(world_size)))


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:torch deprecates:FutureWarning")
def test_all_reduce_coalesced_in_the_background_returns_a_future(rank: int, world_size: int) -> None:
    with world():
        tensors = [torch.from_numpy(numbers(rank, 3)), torch.from_numpy(numbers(rank, 2))]
        future = dist.all_reduce_coalesced(tensors, async_op=True)
        assert isinstance(future, torch._C.Future)  # as what torch's own works return
        received = future.wait()
        assert [one is tensor for one, tensor in zip(received, tensors, strict=True)] == [True, True]
        for tensor, count in zip(tensors, (3, 2), strict=True):
            check("torch", tensor, sum(numbers(other, count) for other in range(world_size)))


def test_which_ops_combine_complex_numbers() -> None:
    import torch.distributed as theirs

    for name in dist.ReduceOp.RedOpType.__members__:
        expected = theirs.distributed_c10d.supports_complex(getattr(theirs.ReduceOp, name))
        op = getattr(dist.ReduceOp, name)
        assert dist.supports_complex(op) is dist.supports_complex(dist.ReduceOp(op)) is expected
        assert dist.supports_complex(getattr(theirs.ReduceOp, name)) is expected


def test_the_old_reduce_ops_warn() -> None:
    with pytest.warns(FutureWarning, match="ReduceOp") as caught:
        assert dist.reduce_op.SUM is dist.ReduceOp.SUM
    assert caught[0].filename == __file__
    with pytest.warns(FutureWarning):
        assert set(dist.reduce_op.__members__) == set(dist.ReduceOp.RedOpType.__members__)
    with pytest.warns(FutureWarning), pytest.raises(AttributeError):
        dist.reduce_op.NONE  # noqa: B018  # reading it is what is tested


@pytest.mark.parametrize("factor", ["x", "1.5", None, [1.0], np.ones(2), b"1"])
def test_a_factor_that_is_no_number(factor: Any) -> None:
    with pytest.raises(TypeError, match="factor must be a number"):
        dist._make_nccl_premul_sum(factor)


def test_factors_are_numbers_and_tensors_of_one() -> None:
    factors = (2, 2.0, np.float32(2), np.array([2]), torch.tensor([2.0]))
    assert [dist._make_nccl_premul_sum(factor).factor for factor in factors] == [2.0] * 5
    with pytest.raises(TypeError):
        dist._make_nccl_premul_sum(torch.ones(2))
