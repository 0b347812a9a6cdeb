"""Wrong calls through MindSpore's frontend: MindSpore's class and ours, told to every rank, and the group goes on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_world import assert_usable, check, numbers, world
from wrong_calls import assert_refused, assert_refused_on_one, named

import shim.frontends.mindspore.mint.distributed as dist
from shim.errors import ArgumentError, MismatchError, TensorError, UnsupportedError
from shim.frontends.mindspore import ops

ONE = np.ones(2, "float32")


def pair() -> list[Any]:
    return [np.ones(2, "float32") for _ in range(2)]


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "reduce a list": (lambda: dist.all_reduce([1.0, 2.0]), TypeError, "tensor"),
    "reduce None": (lambda: dist.all_reduce(None), TypeError, "tensor"),
    "op of int": (lambda: dist.all_reduce(ONE, 0), TypeError, "op must be one of"),  # type: ignore[arg-type]  # the mistake
    "op unknown": (lambda: dist.all_reduce(ONE, "product"), TypeError, "op must be one of"),
    "op unhashable": (lambda: dist.all_reduce(ONE, []), TypeError, "op must be one of"),  # type: ignore[arg-type]  # the mistake
    "async of int": (lambda: dist.all_reduce(ONE, async_op=1), TypeError, "async_op must be a bool"),  # type: ignore[arg-type]  # the mistake
    "gather into a list": (lambda: dist.all_gather_into_tensor(pair(), ONE), TypeError, "output_tensor"),
    "gather a number": (lambda: dist.all_gather_into_tensor(np.ones(4, "float32"), 1.0), TypeError, "input_tensor"),
    "gather into too little": (lambda: dist.all_gather_into_tensor(np.ones(3, "float32"), ONE), ValueError, "output_t"),
    "gather another dtype": (lambda: dist.all_gather_into_tensor(np.ones(4), ONE), (ValueError, TypeError), "output"),
    "no list out": (lambda: dist.all_to_all(ONE, pair()), TypeError, "output_tensor_list must be a list"),  # type: ignore[arg-type]  # the mistake
    "no list in": (lambda: dist.all_to_all(pair(), ONE), TypeError, "input_tensor_list must be a list"),  # type: ignore[arg-type]  # the mistake
    "list too short": (lambda: dist.all_to_all(pair(), [ONE]), ValueError, "input_tensor_list"),
    "list of numbers": (lambda: dist.all_to_all(pair(), [1.0, 2.0]), TypeError, "input_tensor_list"),
    "list of dtypes": (
        lambda: dist.all_to_all(pair(), [ONE, np.ones(2)]),
        (ValueError, TypeError),
        "input_tensor_list",
    ),
    "single of lists": (lambda: dist.all_to_all_single(pair(), ONE), TypeError, "output must be a tensor"),
    "rows not divisible": (lambda: dist.all_to_all_single(np.ones(3), np.ones(3)), ValueError, "input|output"),
    "wrong sum of rows": (
        lambda: dist.all_to_all_single(np.ones(4), np.ones(4), [2, 2], [2, 1]),
        ValueError,
        "input_split_sizes",
    ),
    "negative rows": (
        lambda: dist.all_to_all_single(np.ones(4), np.ones(4), [5, -1], [2, 2]),
        ValueError,
        "output_split_sizes",
    ),
    "rows of text": (
        lambda: dist.all_to_all_single(np.ones(4), np.ones(4), "22"),
        (TypeError, ValueError),
        "output_spl",
    ),
    "average of integers": (lambda: dist.all_reduce(np.ones(2, "int32"), "avg"), ValueError, "AVG is not defined"),
    "sparse": (
        lambda: dist.all_reduce(mindspore.COOTensor(mindspore.Tensor([[0, 1]]), mindspore.Tensor([1.0]), (2, 2))),
        TypeError,
        "dense",
    ),
    "gather a 0-d tensor": (lambda: ops.AllGather()(np.float32(1) + np.zeros(())), ValueError, "input_x"),
    "scatter odd rows": (lambda: ops.ReduceScatter()(np.ones((3, 2))), ValueError, "rows for 2 ranks"),
    "gather text": (lambda: ops.AllGather()("tensor"), TypeError, "input_x must be a tensor"),
    "gather tuple": (lambda: ops.AllGather()((ONE,)), TypeError, "input_x must be a tensor"),
    "accumulator of text": (lambda: ops._MiniStepAllGather()(ONE, "z"), TypeError, "must be a tensor"),
    "root outside": (lambda: ops.Broadcast(2)((ONE,)), ValueError, "root_rank"),
    "destination outside": (lambda: ops.CollectiveGather(-1)(ONE), ValueError, "dest_rank"),
}


@pytest.mark.ranks(2)
def test_wrong_arguments_on_every_rank(rank: int, world_size: int) -> None:
    with world():
        for name, (wrong, kind, words) in WRONG.items():
            with named(name):
                told = assert_refused(kind, words, wrong)
                assert told.startswith("mindspore.")
                assert f"rank {rank} of 2" in told
                assert_usable(rank, world_size)


# What the other ranks call while one calls what is wrong, which is of the same name above but for the rows of three ranks.
RIGHT: dict[str, Callable[[], Any]] = {
    "op unknown": lambda: dist.all_reduce(np.ones(2)),
    "async of int": lambda: dist.all_reduce(np.ones(2)),
    "gather into a list": lambda: dist.all_gather_into_tensor(np.ones(6), np.ones(2)),
    "no list in": lambda: dist.all_to_all([np.ones(2)] * 3, [np.ones(2)] * 3),
    "scatter odd rows": lambda: ops.ReduceScatter()(np.ones((3, 2))),
}


@pytest.mark.ranks(3)
def test_wrong_arguments_on_one_rank(rank: int, world_size: int) -> None:
    """The others, who are waiting for it, are told."""
    with world():
        for name, right in RIGHT.items():
            wrong, kind, _ = WRONG[name]
            if name == "scatter odd rows":
                wrong = functools.partial(ops.ReduceScatter(), np.ones((4, 2)))
            with named(name):
                assert_refused_on_one(rank, kind, wrong, right)
                assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_ranks_that_disagree(rank: int, world_size: int) -> None:
    with world():
        with pytest.raises(MismatchError, match="float32") as caught:
            ops.AllGather()(mindspore.Tensor(numbers(rank, 2 + rank)))
        assert "mindspore.ops.AllGather" in str(caught.value)
        with pytest.raises(MismatchError):
            ops.ReduceScatter(("sum", "max")[rank])(numbers(rank, 2))
        with pytest.raises(MismatchError):
            ops.Broadcast(rank)((numbers(rank, 2),))
        assert_usable(rank, world_size)


CONSTRUCTORS: dict[str, tuple[Callable[[], Any], str]] = {
    "group of int": (lambda: ops.AllGather(0), "group must be a str"),  # type: ignore[arg-type]  # the mistake
    "group None": (lambda: ops.ReduceScatter(group=None), "group must be a str"),  # type: ignore[arg-type]  # the mistake
    "micro-step group": (lambda: ops._MicroStepAllGather(None), "group must be a str"),  # type: ignore[arg-type]  # the mistake
    "op of int": (lambda: ops.ReduceScatter(0), "op must be one of"),  # type: ignore[arg-type]  # the mistake
    "op unknown": (lambda: ops.ReduceScatter("mean"), "op must be one of"),
    "root of text": (lambda: ops.Broadcast("0"), "root_rank must be an int"),  # type: ignore[arg-type]  # the mistake
    "destination of bool": (lambda: ops.CollectiveGather(True), "dest_rank must be an int"),
    "bare tensor": (lambda: ops.Broadcast(0)(ONE), "tuple of tensors"),
    "two tensors": (lambda: ops.AllGather()(ONE, ONE), "must be called with input_x, got 2"),
    "no accumulator": (lambda: ops._MicroStepAllGather()(ONE), "must be called with x and z, got 1"),
}


@pytest.mark.parametrize("what", CONSTRUCTORS)
def test_primitives_refuse_wrong_types(what: str) -> None:
    wrong, words = CONSTRUCTORS[what]
    with pytest.raises(TypeError, match=words) as caught:
        wrong()
    assert isinstance(caught.value, (ArgumentError, TensorError))
    assert str(caught.value).startswith("mindspore.ops.")


def test_primitives_take_no_keywords() -> None:
    with pytest.raises(TypeError, match="input_x"):
        ops.AllGather()(input_x=ONE)  # type: ignore[call-arg]  # the mistake


@pytest.mark.ranks(2)
def test_other_frameworks_gradients_are_refused(rank: int, world_size: int) -> None:
    import torch

    with world():
        with pytest.raises(UnsupportedError, match=r"requires a gradient.*\nPass tensor\.detach"):
            ops.AllGather()(torch.ones(2, requires_grad=True))
        check("torch", ops.AllGather()(torch.ones(2, requires_grad=True).detach()), np.ones(4, "float32"))


@pytest.mark.ranks(2)
@pytest.mark.parametrize(
    ("length", "told"),
    [
        (2, r"broadcast of a tuple of 2 tensors, at (.|\n)*broadcast\(float64 \[1\], root 0\)"),
        (3, r"broadcast of a tuple of 3 tensors(.|\n)*broadcast of a tuple of 2 tensors"),
    ],
)
def test_tuples_of_different_lengths_are_told_on_every_rank(rank: int, length: int, told: str) -> None:
    with world():
        primitive = ops.Broadcast(0)
        for _ in range(2):
            with pytest.raises(MismatchError, match=told):
                primitive(tuple(np.full(1, rank + 1.0) for _ in range(length - rank)))
        with pytest.raises(MismatchError, match="disagree on the operation"):
            primitive((np.ones(1), np.ones(1))) if rank == 0 else dist.all_reduce(np.zeros(2, np.uint8), "max")
        (same,) = primitive((np.full(1, rank + 5.0),))
        assert same.tolist() == [5.0]
