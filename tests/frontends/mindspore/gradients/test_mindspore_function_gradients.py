"""Gradients through MindSpore's functions in PyNative mode: right, in place and not, or refused, never left out.

What is right is found without calculus: the functions are linear, so each number of the gradient is by how much the sum of
all ranks' losses grows when that number of the input grows by 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_world import check, make, numbers, world

import shim.frontends.mindspore.mint.distributed as mint
import shim.frontends.mindspore.ops.communication as communication
from shim.frontends.mindspore.communication import comm_func

Array = Any
RANKS = 3
SHAPE = (6, 2)
ROWS = ((3, 1, 2), (0, 5, 1), (2, 2, 2))  # that rank i sends to rank j
RECEIVED = tuple(zip(*ROWS, strict=True))
UNEVEN = (1, 3, 2)


def zeros(*shape: int) -> Any:
    return make("mindspore", np.zeros(shape, "float32"))


def place(call: Callable[..., Any], tensor: Any, *outputs: Any, asynchronous: bool = False) -> Sequence[Any]:
    """Let *call* write into *outputs*, or into *tensor* itself where there are none."""
    handle = call(tensor, *outputs, async_op=asynchronous)
    if asynchronous:
        handle.wait()
    return outputs or [tensor]


def waited(outputs: Any, handle: Any) -> Any:
    handle.wait()
    return outputs


def split(array: Array) -> list[Array]:
    return np.split(array, RANKS)


def all_reduce(rank: int, inputs: list[Array]) -> list[Array]:
    return [np.sum(inputs, axis=0)]


def average(rank: int, inputs: list[Array]) -> list[Array]:
    return [np.mean(inputs, axis=0)]


def all_gather(rank: int, inputs: list[Array]) -> list[Array]:
    return [np.concatenate(inputs)]


def stacked(rank: int, inputs: list[Array]) -> list[Array]:
    return [np.stack(inputs)]


def each(rank: int, inputs: list[Array]) -> list[Array]:
    return inputs


def uneven_gather(rank: int, inputs: list[Array]) -> list[Array]:
    return [np.concatenate([array[:rows] for array, rows in zip(inputs, UNEVEN, strict=True)])]


def reduce_scatter(rank: int, inputs: list[Array]) -> list[Array]:
    return [split(np.sum(inputs, axis=0))[rank]]


def average_scatter(rank: int, inputs: list[Array]) -> list[Array]:
    return [split(np.mean(inputs, axis=0))[rank]]


def uneven_scatter(rank: int, inputs: list[Array]) -> list[Array]:
    return [np.split(np.sum(inputs, axis=0), np.cumsum(UNEVEN)[:-1])[rank]]


def exchange(rank: int, inputs: list[Array]) -> list[Array]:
    return [np.concatenate([split(array)[rank] for array in inputs])]


def exchange_lists(rank: int, inputs: list[Array]) -> list[Array]:
    return [split(array)[rank] for array in inputs]


def uneven_exchange(rank: int, inputs: list[Array]) -> list[Array]:
    parts = [np.split(array, np.cumsum(rows)[:-1])[rank] for array, rows in zip(inputs, ROWS, strict=True)]
    return [np.concatenate(parts)]


def reduced_to_1(rank: int, inputs: list[Array]) -> list[Array]:
    return [np.sum(inputs, axis=0) if rank == 1 else np.zeros(1)]


def gathered_to_1(rank: int, inputs: list[Array]) -> list[Array]:
    return [np.concatenate(inputs) if rank == 1 else np.zeros(1)]


def scattered_from_1(rank: int, inputs: list[Array]) -> list[Array]:
    return [split(inputs[1])[rank]]


def thirds(tensor: Any) -> list[Any]:
    return [tensor[:2], tensor[2:4], tensor[4:]]


Case = tuple[Callable[[int, Any], Sequence[Any]], Callable[[int, list[Array]], list[Array]]]

IN_PLACE: dict[str, Case] = {
    "all_reduce": (lambda rank, x: place(mint.all_reduce, x), all_reduce),
    "all_reduce avg": (lambda rank, x: place(lambda t, **how: mint.all_reduce(t, "avg", **how), x), average),
    "all_reduce async": (lambda rank, x: place(mint.all_reduce, x, asynchronous=True), all_reduce),
    "all_reduce of ops": (lambda rank, x: place(communication.all_reduce, x), all_reduce),
    "all_gather_into_tensor": (
        lambda rank, x: place(lambda t, out, **how: mint.all_gather_into_tensor(out, t, **how), x, zeros(18, 2)),
        all_gather,
    ),
    "all_gather_into_tensor stacked": (
        lambda rank, x: place(lambda t, out, **how: mint.all_gather_into_tensor(out, t, **how), x, zeros(3, 6, 2)),
        stacked,
    ),
    "all_gather_into_tensor_uneven": (
        lambda rank, x: place(
            lambda t, out, **how: mint.all_gather_into_tensor_uneven(out, t[: UNEVEN[rank]], UNEVEN, **how),
            x,
            zeros(6, 2),
        ),
        uneven_gather,
    ),
    "all_gather": (
        lambda rank, x: place(
            lambda t, *out, **how: mint.all_gather(out, t, **how), x, *(zeros(*SHAPE) for _ in range(3))
        ),
        each,
    ),
    "all_gather async": (
        lambda rank, x: place(
            lambda t, *out, **how: mint.all_gather(out, t, **how),
            x,
            *(zeros(*SHAPE) for _ in range(3)),
            asynchronous=True,
        ),
        each,
    ),
    "reduce_scatter_tensor": (
        lambda rank, x: place(lambda t, out, **how: mint.reduce_scatter_tensor(out, t, **how), x, zeros(2, 2)),
        reduce_scatter,
    ),
    "reduce_scatter_tensor avg": (
        lambda rank, x: place(lambda t, out, **how: mint.reduce_scatter_tensor(out, t, "avg", **how), x, zeros(2, 2)),
        average_scatter,
    ),
    "reduce_scatter_tensor_uneven": (
        lambda rank, x: place(
            lambda t, out, **how: mint.reduce_scatter_tensor_uneven(out, t, UNEVEN, **how), x, zeros(UNEVEN[rank], 2)
        ),
        uneven_scatter,
    ),
    "reduce_scatter": (
        lambda rank, x: place(lambda t, out, **how: mint.reduce_scatter(out, thirds(t), **how), x, zeros(2, 2)),
        reduce_scatter,
    ),
    "all_to_all": (
        lambda rank, x: place(
            lambda t, *out, **how: mint.all_to_all(out, thirds(t), **how), x, *(zeros(2, 2) for _ in range(3))
        ),
        exchange_lists,
    ),
    "all_to_all_single": (
        lambda rank, x: place(lambda t, out, **how: mint.all_to_all_single(out, t, **how), x, zeros(6, 2)),
        exchange,
    ),
    "all_to_all_single uneven": (
        lambda rank, x: place(
            lambda t, out, **how: mint.all_to_all_single(out, t, RECEIVED[rank], ROWS[rank], **how),
            x,
            zeros(sum(RECEIVED[rank]), 2),
        ),
        uneven_exchange,
    ),
    "all_to_all_v_c": (
        lambda rank, x: place(
            lambda t, out, **how: communication.all_to_all_v_c(out, t, [n for rows in ROWS for n in rows], **how),
            x,
            zeros(sum(RECEIVED[rank]), 2),
        ),
        uneven_exchange,
    ),
}

RETURNING: dict[str, Case] = {
    "all_reduce": (lambda rank, x: [comm_func.all_reduce(x)[0]], all_reduce),
    "all_reduce async": (lambda rank, x: [waited(*comm_func.all_reduce(x, async_op=True))], all_reduce),
    "all_gather_into_tensor": (lambda rank, x: [comm_func.all_gather_into_tensor(x)[0]], all_gather),
    "reduce_scatter_tensor": (lambda rank, x: [comm_func.reduce_scatter_tensor(x)[0]], reduce_scatter),
    "all_to_all_with_output_shape": (
        lambda rank, x: comm_func.all_to_all_with_output_shape([(2, 2)] * 3, thirds(x))[0],
        exchange_lists,
    ),
    "all_to_all_with_output_shape async": (
        lambda rank, x: waited(*comm_func.all_to_all_with_output_shape([(2, 2)] * 3, thirds(x), async_op=True)),
        exchange_lists,
    ),
    "all_to_all_single_with_output_shape": (
        lambda rank, x: [
            comm_func.all_to_all_single_with_output_shape((sum(RECEIVED[rank]), 2), x, RECEIVED[rank], ROWS[rank])[0]
        ],
        uneven_exchange,
    ),
    "reduce": (lambda rank, x: [comm_func.reduce(x, 1)], reduced_to_1),
    "gather_into_tensor": (lambda rank, x: [comm_func.gather_into_tensor(x, 1)], gathered_to_1),
    "scatter_tensor": (lambda rank, x: [comm_func.scatter_tensor(x, 1)], scattered_from_1),
}


def weighted(outputs: Sequence[Any], weights: list[Array]) -> Any:
    total = (outputs[0] * make("mindspore", weights[0])).sum()
    for output, weight in zip(outputs[1:], weights[1:], strict=True):
        total = total + (output * make("mindspore", weight)).sum()
    return total


def weights_like(rank: int, outputs: list[Array]) -> list[Array]:
    return [numbers(rank + 2 * index, output.shape) for index, output in enumerate(outputs)]


def expected_gradient(rank: int, simulated: Callable[[int, list[Array]], list[Array]]) -> Array:
    inputs = [2.0 * numbers(other, SHAPE) for other in range(RANKS)]
    weights = [weights_like(other, simulated(other, inputs)) for other in range(RANKS)]

    def losses(changed: list[Array]) -> float:
        return float(
            sum(
                (output * weight).sum(dtype="float64")
                for other in range(RANKS)
                for output, weight in zip(simulated(other, changed), weights[other], strict=True)
            )
        )

    before, gradient = losses(inputs), np.zeros(SHAPE, "float32")
    for index in np.ndindex(*SHAPE):
        changed = [array.astype("float64") for array in inputs]
        changed[rank][index] += 2  # the input is doubled before it is communicated
        gradient[index] = losses(changed) - before
    return gradient


@pytest.mark.ranks(RANKS)
@pytest.mark.parametrize(
    ("form", "name"), [*(("in place", name) for name in IN_PLACE), *(("returning", name) for name in RETURNING)]
)
def test_gradients(rank: int, world_size: int, form: str, name: str) -> None:
    run, simulated = (IN_PLACE if form == "in place" else RETURNING)[name]
    inputs = [2 * numbers(other, SHAPE) for other in range(RANKS)]
    outputs = simulated(rank, inputs)
    weights = weights_like(rank, outputs)

    def loss(tensor: Any) -> Any:
        return weighted(run(rank, tensor * 2), weights)

    with world():
        value, gradient = mindspore.value_and_grad(loss)(make("mindspore", numbers(rank, SHAPE)))
        total = sum((output * weight).sum() for output, weight in zip(outputs, weights, strict=True))
        np.testing.assert_allclose(value.asnumpy(), total, rtol=1e-6)
        np.testing.assert_allclose(gradient.asnumpy(), expected_gradient(rank, simulated), rtol=1e-5)


@pytest.mark.ranks(RANKS)
@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("form", ["in place", "returning"])
def test_only_the_ranks_that_have_the_extreme_get_a_gradient(rank: int, world_size: int, op: str, form: str) -> None:
    """Each column's extreme is on another rank; the last column's is on all, which share."""
    inputs = [np.array([[other * factor for factor in (1, -1, 2, 0)]], "float32") for other in range(RANKS)]
    turns = inputs[rank]
    has_it = [mine == (np.max if op == "max" else np.min)(inputs, axis=0) for mine in inputs]
    share = has_it[rank] / np.sum(has_it, axis=0)

    def loss(tensor: Any) -> Any:
        if form == "returning":
            communicated, _ = comm_func.all_reduce(tensor * 2, op)
        else:
            communicated = tensor * 2
            mint.all_reduce(communicated, op)
            communicated = communicated * 1
        return (communicated * make("mindspore", numbers(rank, (1, 4)))).sum()

    with world():
        gradient = mindspore.grad(loss)(make("mindspore", turns))
        total = np.sum([numbers(other, (1, 4)) for other in range(RANKS)], axis=0)
        np.testing.assert_allclose(gradient.asnumpy(), 2 * share * total, rtol=1e-6)


@pytest.mark.ranks(2)
def test_broadcast_sends_all_gradients_to_the_root(rank: int, world_size: int) -> None:
    with world():
        gradient = mindspore.grad(lambda tensor: (comm_func.broadcast(tensor * 2, 1) * (rank + 1)).sum())(zeros(3))
        check("mindspore", gradient, np.full(3, 2 * (1 + 2) if rank == 1 else 0, "float32"))


@pytest.mark.ranks(2)
def test_a_rank_that_receives_nothing_takes_part_in_the_gradient(rank: int, world_size: int) -> None:
    """All rows go to rank 1, whose weights are the gradient of both."""

    def loss(tensor: Any) -> Any:
        rows = 2 * rank
        received, _ = comm_func.all_to_all_single_with_output_shape((2 * rows, 3), tensor * 2, (rows, rows), (0, 2))
        return (received * make("mindspore", numbers(5, (4, 3)))).sum() if rank else received.sum()

    with world():
        value, gradient = mindspore.value_and_grad(loss)(make("mindspore", numbers(rank, (2, 3))))
        assert rank or float(value) == 0.0
        check("mindspore", gradient, 2 * numbers(5, (4, 3))[2 * rank : 2 * rank + 2])


@pytest.mark.ranks(2)
@pytest.mark.parametrize("form", ["in place", "returning"])
def test_a_gradients_gradient(rank: int, world_size: int, form: str) -> None:
    """The sum of the cubes of the sum of both ranks' numbers s: the second derivative is 12 x n x s."""

    def cubes(tensor: Any) -> Any:
        if form == "returning":
            total, _ = comm_func.all_reduce(tensor * 1)
        else:
            total = tensor * 1
            mint.all_reduce(total)
        return (total * total * total).sum()

    with world():
        second = mindspore.grad(lambda tensor: mindspore.grad(cubes)(tensor).sum())
        total = numbers(0, (2, 3)) + numbers(1, (2, 3))
        check("mindspore", second(make("mindspore", numbers(rank, (2, 3)))), 24 * total)
