"""One rank's wrong call of a collective of mint.distributed is an error on every rank, and the group goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mindspore_world import assert_usable, world
from wrong_calls import assert_refused, named

import shim.frontends.mindspore.mint.distributed as dist
import shim.frontends.mindspore.ops.communication as communication
from shim.errors import MismatchError, RankError
from shim.frontends.mindspore.communication import get_comm_name, management

Call = Callable[[], Any]


def some(rows: int = 2, count: int = 3) -> list[Any]:
    return [np.ones(rows, "float32") for _ in range(count)]


def one(rows: int = 2) -> Any:
    return np.ones(rows, "float32")


RIGHT: dict[str, Call] = {
    "all_gather": lambda: dist.all_gather(some(), one()),
    "uneven gather": lambda: dist.all_gather_into_tensor_uneven(one(6), one(), [2, 2, 2]),
    "reduce_scatter": lambda: dist.reduce_scatter(one(), some()),
    "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(one(), one(6)),
    "uneven scatter": lambda: dist.reduce_scatter_tensor_uneven(one(), one(6), [2, 2, 2]),
    "broadcast": lambda: dist.broadcast(one(), 0),
    "reduce": lambda: dist.reduce(one(), 0),
    "gather": lambda: dist.gather(one(), some()),
    "scatter": lambda: dist.scatter(one(), some()),
    "gather_into_tensor": lambda: communication.gather_into_tensor(one(6), one()),
    "scatter_tensor": lambda: communication.scatter_tensor(one(), one(6)),
    "all_to_all_v_c": lambda: communication.all_to_all_v_c(one(3), one(3), [1] * 9),
}

WRONG: dict[str, tuple[str, Call, type[Exception], str]] = {
    "no list": ("all_gather", lambda: dist.all_gather(one(), one()), TypeError, "tensor_list must be a list"),  # type: ignore[arg-type]  # the mistake
    "two places": (
        "all_gather",
        lambda: dist.all_gather(some(2, 2), one()),
        TypeError,
        "tensor for each of 3 ranks, got 2",
    ),
    "four places": (
        "all_gather",
        lambda: dist.all_gather(some(2, 4), one()),
        TypeError,
        "tensor for each of 3 ranks, got 4",
    ),
    "another shape": (
        "all_gather",
        lambda: dist.all_gather(some(3), one()),
        TypeError,
        r"float32 \(2,\) and float32 \(3,\)",
    ),
    "a number": ("all_gather", lambda: dist.all_gather(some(), 1.0), TypeError, "must be a tensor"),
    "rows too few": (
        "uneven gather",
        lambda: dist.all_gather_into_tensor_uneven(one(6), one(), [2, 2, 1]),
        ValueError,
        "output_split_sizes",
    ),
    "rows of another": (
        "uneven gather",
        lambda: dist.all_gather_into_tensor_uneven(one(6), one(), [1, 1, 4]),
        ValueError,
        "output_split_sizes|input",
    ),
    "a list of output": (
        "uneven gather",
        lambda: dist.all_gather_into_tensor_uneven(some(), one()),
        TypeError,
        "output",
    ),
    "no inputs": ("reduce_scatter", lambda: dist.reduce_scatter(one(), []), TypeError, "input_list .* got 0"),
    "op": ("reduce_scatter", lambda: dist.reduce_scatter(one(), some(), "mean"), TypeError, "op must be one of"),
    "shapes": ("reduce_scatter", lambda: dist.reduce_scatter(one(3), some()), TypeError, "input_list"),
    "odd rows": (
        "reduce_scatter_tensor",
        lambda: dist.reduce_scatter_tensor(one(), one(5)),
        ValueError,
        "input|output",
    ),
    "uneven prod": (
        "uneven scatter",
        lambda: dist.reduce_scatter_tensor_uneven(one(), one(6), [2, 2, 2], "prod"),
        TypeError,
        "op must be one of sum, min, max, avg, got 'prod'",
    ),
    "rows of output": (
        "uneven scatter",
        lambda: dist.reduce_scatter_tensor_uneven(one(), one(6), [1, 1, 4]),
        ValueError,
        "input_split_sizes|output",
    ),
    "source text": ("broadcast", lambda: dist.broadcast(one(), "0"), TypeError, "src must be an int, got str"),  # type: ignore[arg-type]  # the mistake
    "source 3": ("broadcast", lambda: dist.broadcast(one(), 3), RankError, r"src must be one of .* \[0, 1, 2\], got 3"),
    "destination True": ("reduce", lambda: dist.reduce(one(), True), TypeError, "dst must be an int, got bool"),
    "async": ("reduce", lambda: dist.reduce(one(), 0, async_op=None), TypeError, "async_op must be a bool"),  # type: ignore[arg-type]  # the mistake
    "no gather list": ("gather", lambda: dist.gather(one(), None), TypeError, "gather_list must be a list"),  # type: ignore[arg-type]  # the mistake
    "mixed gather list": (
        "gather",
        lambda: dist.gather(one(), [one(), one(3)]),
        TypeError,
        "gather_list must have tensors",
    ),
    "mixed dtypes": ("gather", lambda: dist.gather(one(), [one(), np.ones(2)]), TypeError, "float32 .* and float64"),
    "no scatter list": ("scatter", lambda: dist.scatter(one(), None), TypeError, "scatter_list must be a list"),  # type: ignore[arg-type]  # the mistake
    "scattered text": ("scatter", lambda: dist.scatter(one(), ["a", "b"]), TypeError, "scatter_list must be a tensor"),
    "gathered into a list": (
        "gather_into_tensor",
        lambda: communication.gather_into_tensor([one()], one()),
        TypeError,
        "output_tensor must be a tensor",
    ),
    "scattered from a list": (
        "scatter_tensor",
        lambda: communication.scatter_tensor(one(), [one()]),
        TypeError,
        "input_tensor must be a tensor",
    ),
    "matrix": (
        "all_to_all_v_c",
        lambda: communication.all_to_all_v_c(one(3), one(3), [1] * 8),
        TypeError,
        "send_count_matrix must be a list of 9 ints",
    ),
    "rows of matrix": (
        "all_to_all_v_c",
        lambda: communication.all_to_all_v_c(one(3), one(3), [2] * 9),
        ValueError,
        "send_count_matrix",
    ),
}


@pytest.mark.ranks(3)
def test_one_rank_is_wrong(rank: int, world_size: int) -> None:
    with world():
        for name, (right, wrong, kind, words) in WRONG.items():
            with named(name):
                if rank == 1:
                    assert assert_refused(kind, words, wrong).startswith("mindspore.")
                else:
                    assert_refused(MismatchError, None, RIGHT[right])
                RIGHT[right]()
                assert_usable(rank, world_size)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("what", ["gather", "scatter"])
def test_the_roots_list_has_a_tensor_for_each_rank(rank: int, world_size: int, what: str, count: int) -> None:
    with world():
        call = dist.gather if what == "gather" else dist.scatter
        with pytest.raises(TypeError if rank == 1 else MismatchError):
            call(one(), some(2, count), 1)
        call(one(), some(2, 3), 1)


@pytest.mark.ranks(2)
def test_the_name_of_a_group(rank: int, world_size: int) -> None:
    with world():
        name = dist.new_group([0, 1])
        assert get_comm_name(name) == name
        assert get_comm_name() == management.get_comm_name("mccl_world_group") == "world"
        with pytest.raises(RuntimeError, match="no group named"):
            get_comm_name("no such group")
        with pytest.raises(TypeError, match="group must be a str"):
            get_comm_name(None)  # type: ignore[arg-type]  # the mistake
