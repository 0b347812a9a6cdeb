"""reduce, reduce_scatter and the reductions of several tensors, through the torch frontend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch_world import EVERY_SIZE, SIZES, TORCH_DTYPES, check, make, numbers, torch_numbers, world

import shim.frontends.torch.distributed as dist
from shim.errors import MismatchError, ShimError

KINDS = ("numpy", "torch")
REDUCTIONS = {"SUM": np.sum, "PRODUCT": np.prod, "MIN": np.min, "MAX": np.max, "AVG": np.mean}


@SIZES
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reduce_to_every_rank(rank: int, world_size: int, kind: str, op: str) -> None:
    """The other ranks' tensors are left as they are."""
    with world():
        expected = REDUCTIONS[op]([numbers(other, (2, 5)) for other in range(world_size)], axis=0)
        for dst in range(world_size):
            tensor = make(kind, numbers(rank, (2, 5)))
            assert dist.reduce(tensor, dst, getattr(dist.ReduceOp, op)) is None
            check(kind, tensor, expected if rank == dst else numbers(rank, (2, 5)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_reduce_of_every_dtype(rank: int, world_size: int, dtype: str) -> None:
    import torch

    with world():
        tensor = torch_numbers(rank, (4,), dtype)
        dist.reduce(tensor, group_dst=1)
        in_numpy = "float32" if dtype == "bfloat16" else dtype
        total = np.sum([numbers(other, (4,), in_numpy) for other in range(world_size)], axis=0)
        expected = torch.from_numpy(total).to(tensor.dtype) if rank == 1 else torch_numbers(rank, (4,), dtype)
        assert torch.equal(tensor, expected)


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


@EVERY_SIZE
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reduce_scatter(rank: int, world_size: int, kind: str, op: str) -> None:
    with world():
        output = make(kind, np.zeros((2, 3)))
        inputs = [make(kind, numbers(rank + 4 * place, (2, 3))) for place in range(world_size)]
        assert dist.reduce_scatter(output, inputs, getattr(dist.ReduceOp, op)) is None
        expected = REDUCTIONS[op]([numbers(other + 4 * rank, (2, 3)) for other in range(world_size)], axis=0)
        check(kind, output, expected)
        for place, tensor in enumerate(inputs):
            check(kind, tensor, numbers(rank + 4 * place, (2, 3)))


@pytest.mark.ranks(3, 7)
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
MISTAKES: dict[str, tuple[type[Exception], str, Any, Any]] = {
    "no destination": (ValueError, "dst", lambda n: dist.reduce(np.ones(2)), lambda n: dist.reduce(np.ones(2), 0)),
    "two destinations": (
        ValueError,
        "group_dst",
        lambda n: dist.reduce(np.ones(2), 0, group_dst=0),
        lambda n: dist.reduce(np.ones(2), 0),
    ),
    "destination outside": (
        ValueError,
        "9",
        lambda n: dist.reduce(np.ones(2), 9),
        lambda n: dist.reduce(np.ones(2), 0),
    ),
    "destination is text": (
        TypeError,
        "dst",
        lambda n: dist.reduce(np.ones(2), "0"),
        lambda n: dist.reduce(np.ones(2), 0),
    ),
    "op of reduce": (
        TypeError,
        "op",
        lambda n: dist.reduce(np.ones(2), 0, "sum"),
        lambda n: dist.reduce(np.ones(2), 0),
    ),
    "complex": (
        ValueError,
        "op",
        lambda n: dist.reduce(np.ones(2, complex), 0, dist.ReduceOp.MAX),
        lambda n: dist.reduce(np.ones(2, complex), 0),
    ),
    "list to reduce": (TypeError, "tensor", lambda n: dist.reduce([ONE], 0), lambda n: dist.reduce(np.ones(2), 0)),
    "tuple": (
        TypeError,
        "input_list",
        lambda n: dist.reduce_scatter(np.ones(2), (ONE,) * n),
        lambda n: dist.reduce_scatter(np.ones(2), [ONE] * n),
    ),
    "too short": (
        ValueError,
        "input_list",
        lambda n: dist.reduce_scatter(np.ones(2), [ONE] * (n - 1)),
        lambda n: dist.reduce_scatter(np.ones(2), [ONE] * n),
    ),
    "list for the output": (
        TypeError,
        "output",
        lambda n: dist.reduce_scatter([np.ones(2)], [ONE] * n),
        lambda n: dist.reduce_scatter(np.ones(2), [ONE] * n),
    ),
    "size": (
        ValueError,
        "output",
        lambda n: dist.reduce_scatter(np.ones(3), [ONE] * n),
        lambda n: dist.reduce_scatter(np.ones(2), [ONE] * n),
    ),
    "dtype": (
        ValueError,
        "output",
        lambda n: dist.reduce_scatter(np.ones(2, int), [ONE] * n),
        lambda n: dist.reduce_scatter(np.ones(2), [ONE] * n),
    ),
    "op": (
        TypeError,
        "op",
        lambda n: dist.reduce_scatter(np.ones(2), [ONE] * n, 0),
        lambda n: dist.reduce_scatter(np.ones(2), [ONE] * n),
    ),
}


@SIZES
@pytest.mark.parametrize("name", MISTAKES)
def test_wrong_arguments_on_every_rank_and_on_one(rank: int, world_size: int, name: str) -> None:
    kind, words, wrong, right = MISTAKES[name]
    with world():
        with pytest.raises(kind, match=words) as caught:
            wrong(world_size)
        assert isinstance(caught.value, ShimError)
        assert f"rank {rank} of {world_size}" in str(caught.value)
        dist.barrier()
        with pytest.raises(kind if rank == 1 else MismatchError):
            (wrong if rank == 1 else right)(world_size)
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
def test_the_base_functions_warn_of_their_names(rank: int, world_size: int) -> None:
    with world():
        output = np.zeros(2)
        with pytest.warns(FutureWarning, match="reduce_scatter_single"):
            dist._reduce_scatter_base(output, numbers(rank, 2 * world_size))
        expected = sum(numbers(other, 2 * world_size) for other in range(world_size))
        check("numpy", output, expected[2 * rank : 2 * rank + 2])
        everything = np.zeros(2 * world_size)
        with pytest.warns(FutureWarning, match="all_gather_single") as caught:
            dist._all_gather_base(everything, numbers(rank, 2))
        check("numpy", everything, np.concatenate([numbers(other, 2) for other in range(world_size)]))
        assert caught[0].filename == __file__


@SIZES
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
@pytest.mark.filterwarnings("ignore:torch 2.13 deprecates:FutureWarning")
def test_all_reduce_coalesced_in_the_background_returns_a_future(rank: int, world_size: int) -> None:
    import torch

    with world():
        tensors = [torch.from_numpy(numbers(rank, 3)), torch.from_numpy(numbers(rank, 2))]
        future = dist.all_reduce_coalesced(tensors, async_op=True)
        assert isinstance(future, torch._C.Future)  # as what torch's own works return
        received = future.wait()
        assert [one is tensor for one, tensor in zip(received, tensors, strict=True)] == [True, True]
        for tensor, count in zip(tensors, (3, 2), strict=True):
            check("torch", tensor, sum(numbers(other, count) for other in range(world_size)))


COALESCED_MISTAKES: dict[str, tuple[type[Exception], str, Any]] = {
    "tuple": (TypeError, "tensors", lambda: dist.all_reduce_coalesced((np.ones(2),))),
    "empty": (ValueError, "tensors", lambda: dist.all_reduce_coalesced([])),
    "dtypes": (ValueError, "one dtype", lambda: dist.all_reduce_coalesced([np.ones(2), np.ones(2, int)])),
    "no tensor": (TypeError, "tensors", lambda: dist.all_reduce_coalesced([1, 2])),
    "op": (TypeError, "op", lambda: dist.all_reduce_coalesced([np.ones(2)], "sum")),
    "complex": (ValueError, "op", lambda: dist.all_reduce_coalesced([np.ones(2, complex)], dist.ReduceOp.MAX)),
}


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:torch 2.13 deprecates:FutureWarning")
@pytest.mark.parametrize("name", COALESCED_MISTAKES)
def test_wrong_arguments_of_all_reduce_coalesced(rank: int, world_size: int, name: str) -> None:
    kind, words, wrong = COALESCED_MISTAKES[name]
    with world():
        with pytest.raises(kind, match=words):
            wrong()
        dist.barrier()
        if rank == 1:
            with pytest.raises(kind):
                wrong()
        else:
            with pytest.raises(MismatchError):
                dist.all_reduce_coalesced([np.ones(2)])
        dist.barrier()


@SIZES
@pytest.mark.filterwarnings("ignore:torch 2.13 deprecates:FutureWarning")
def test_lists_of_different_lengths_are_told_to_all(rank: int, world_size: int) -> None:
    with world():
        tensors = [np.ones(2) for _ in range(1 + (rank == 1))]
        with pytest.raises(MismatchError, match="all_reduce_coalesced"):
            dist.all_reduce_coalesced(tensors)
        check("numpy", tensors[0], np.ones(2))
        dist.barrier()


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
    import torch

    factors = (2, 2.0, np.float32(2), np.array([2]), torch.tensor([2.0]))
    assert [dist._make_nccl_premul_sum(factor).factor for factor in factors] == [2.0] * 5
    with pytest.raises(TypeError):
        dist._make_nccl_premul_sum(torch.ones(2))
