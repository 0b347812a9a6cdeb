"""Gradients of the functions that reduce, for every reduce op: the slope of the sum of all ranks' losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_slopes import Array, check_slope
from mindspore_world import REDUCTIONS, array_of, check, make, numbers, world

import shim.frontends.mindspore.mint.distributed as mint
import shim.frontends.mindspore.ops.communication as communication
from shim.errors import UnsupportedError
from shim.frontends.mindspore.communication import comm_func

RANKS = 3
UNEVEN = (1, 3, 2)


def zeros(rows: int) -> Any:
    return make("mindspore", np.zeros((rows, 2), "float32"))


def written(call: Callable[[Any], Any], output: Any) -> Any:
    """Return *output* after *call* has written into it, as an operator's result."""
    call(output)
    return output * 1


def all_reduced(inputs: Array, rank: int, op: str) -> Array:
    return REDUCTIONS[op](inputs, axis=0)


def rows(inputs: Array, rank: int, op: str) -> Array:
    return np.split(REDUCTIONS[op](inputs, axis=0), RANKS)[rank]


def uneven_rows(inputs: Array, rank: int, op: str) -> Array:
    return np.split(REDUCTIONS[op](inputs, axis=0), np.cumsum(UNEVEN)[:-1])[rank]


def at_1(inputs: Array, rank: int, op: str) -> Array:
    return REDUCTIONS[op](inputs, axis=0) if rank == 1 else np.zeros(1)


Case = tuple[Callable[[Any, int, str], Any], Callable[[Array, int, str], Array]]

CASES: dict[str, Case] = {
    "all_reduce": (lambda x, rank, op: written(lambda y: mint.all_reduce(y, op), x * 1), all_reduced),
    "all_reduce of ops": (lambda x, rank, op: written(lambda y: communication.all_reduce(y, op), x * 1), all_reduced),
    "all_reduce returned": (lambda x, rank, op: comm_func.all_reduce(x, op)[0], all_reduced),
    "reduce_scatter_tensor": (
        lambda x, rank, op: written(lambda y: mint.reduce_scatter_tensor(y, x, op), zeros(2)),
        rows,
    ),
    "reduce_scatter_tensor returned": (lambda x, rank, op: comm_func.reduce_scatter_tensor(x, op)[0], rows),
    "reduce_scatter_tensor_uneven": (
        lambda x, rank, op: written(lambda y: mint.reduce_scatter_tensor_uneven(y, x, UNEVEN, op), zeros(UNEVEN[rank])),
        uneven_rows,
    ),
    "reduce_scatter": (
        lambda x, rank, op: written(lambda y: mint.reduce_scatter(y, [x[:2], x[2:4], x[4:]], op), zeros(2)),
        rows,
    ),
    "reduce returned": (lambda x, rank, op: comm_func.reduce(x, 1, op), at_1),
}

UNKNOWN = {  # the functions that do not take every op, as MindSpore's do not
    *(("avg", each) for each in ("all_reduce returned", "reduce_scatter_tensor returned", "reduce returned")),
    ("prod", "reduce_scatter_tensor_uneven"),
}


@pytest.mark.ranks(RANKS)
@pytest.mark.parametrize(
    ("op", "name"), [(op, name) for op in REDUCTIONS for name in CASES if (op, name) not in UNKNOWN]
)
def test_every_op_has_its_gradient(rank: int, world_size: int, op: str, name: str) -> None:
    """The ranks' extremes are spread over them; one rank's 0 in each of the first rows would spoil a divided product."""
    call, model = CASES[name]
    inputs = [(numbers(3 * other, (6, 2)) * 7) % 11 + other / 4 for other in range(RANKS)]
    for other in range(RANKS):
        inputs[other][other] = 0
    with world():
        check_slope(
            lambda x: call(x, rank, op), lambda given: [model(given, other, op) for other in range(RANKS)], inputs, rank
        )


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_a_products_gradient_has_the_dtype(rank: int, world_size: int, dtype: str) -> None:
    with world():
        tensor = make("mindspore", numbers(rank, 3)).astype(getattr(mindspore, dtype))
        gradient = mindspore.grad(lambda x: comm_func.all_reduce(x, "prod")[0].astype(mindspore.float64).sum())(tensor)
        assert gradient.dtype == tensor.dtype
        np.testing.assert_array_equal(array_of(gradient), 2 * numbers(1 - rank, 3))


@pytest.mark.ranks(2)
def test_a_products_second_gradient_is_refused(rank: int, world_size: int) -> None:
    def first(tensor: Any) -> Any:
        return mindspore.grad(lambda x: comm_func.all_reduce(x * 1, "prod")[0].sum())(tensor)

    with world():
        with pytest.raises(
            UnsupportedError, match=r"all_reduce \(gradient\): has no gradient of its own for a product"
        ):
            mindspore.grad(lambda x: first(x).sum())(make("mindspore", numbers(rank, 3)))
        mindspore.graph.api._pynative_executor.clear_res()
        check("mindspore", first(make("mindspore", numbers(rank, 3))), 2 * numbers(1 - rank, 3))
