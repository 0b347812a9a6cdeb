"""Collectives that are differentiated while another gradient is recorded, where MindSpore's slices are copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_slopes import Array, Model, slope, weights_for
from mindspore_world import check, make, numbers, world

from shim.errors import MismatchError
from shim.frontends.mindspore import ops
from shim.frontends.mindspore.communication import comm_func


def blocks(split: int, concat: int) -> Model:
    def model(given: Any) -> list[Array]:
        sent = [np.split(each, len(given), axis=split) for each in given]
        return [np.concatenate([each[rank] for each in sent], axis=concat) for rank in range(len(given))]

    return model


def to_the_right(given: Any) -> list[Array]:
    return [given[rank - 1] for rank in range(len(given))]


def neighbor_exchange(rank: int, ranks: int) -> Callable[[Any], Any]:
    shape = [ranks, 2 * ranks]
    exchange = ops.NeighborExchange(
        [(rank + 1) % ranks], [(rank - 1) % ranks], [shape], [shape], recv_type=mindspore.float32
    )
    return lambda tensor: exchange((tensor,))[0]


def borders(rank: int, ranks: int) -> Callable[[Any], Any]:
    none = [-1] * 8
    sent, received = [*none[:2], (rank + 1) % ranks, *none[3:]], [*none[:6], (rank - 1) % ranks, -1]
    exchange = ops.NeighborExchangeV2(sent, [0, 0, 0, 1], received, [0, 0, 1, 0], "NCHW")
    return lambda tensor: exchange(tensor.reshape((1, 1, *tensor.shape)))


def bordered(given: Any) -> list[Array]:
    return [np.hstack([given[rank - 1][:, -1:], own])[None, None] for rank, own in enumerate(given)]


def summed(given: Any) -> list[Array]:
    return [np.sum(given, axis=0)] * len(given)


def gathered(given: Any) -> list[Array]:
    return [np.concatenate(given)] * len(given)


def scattered(given: Any) -> list[Array]:
    return np.split(np.sum(given, axis=0), len(given))


# Each with what it does, for tensors with as many rows as ranks and twice as many columns.
CASES: dict[str, tuple[Callable[[int, int], Any], Model]] = {
    "AlltoAll(0, 0)": (lambda rank, ranks: ops.AlltoAll(ranks, 0, 0), blocks(0, 0)),
    "AlltoAll(1, 0)": (lambda rank, ranks: ops.AlltoAll(ranks, 1, 0), blocks(1, 0)),
    "AlltoAll(0, -1)": (lambda rank, ranks: ops.AlltoAll(ranks, 0, -1), blocks(0, -1)),
    "AllReduce": (lambda rank, ranks: ops.AllReduce(), summed),
    "AllGather": (lambda rank, ranks: ops.AllGather(), gathered),
    "ReduceScatter": (lambda rank, ranks: ops.ReduceScatter(), scattered),
    "CollectiveScatter": (
        lambda rank, ranks: ops.CollectiveScatter(1),
        lambda given: np.split(given[1], len(given)),
    ),
    "Broadcast of a transpose": (
        lambda rank, ranks: lambda tensor: ops.Broadcast(1)((tensor.T,))[0],
        lambda given: [given[1].T] * len(given),
    ),
    "AlltoAllV": (
        lambda rank, ranks: lambda tensor: ops.AlltoAllV()(tensor.reshape((-1,)), *[[2 * ranks] * ranks] * 2),
        lambda given: blocks(0, 0)([each.ravel() for each in given]),
    ),
    "NeighborExchange": (neighbor_exchange, to_the_right),
    "NeighborExchangeV2": (borders, bordered),
    "comm_func.all_to_all": (
        lambda rank, ranks: lambda tensor: comm_func.all_to_all_single_with_output_shape(tensor.shape, tensor)[0],
        blocks(0, 0),
    ),
    "comm_func.all_gather": (lambda rank, ranks: lambda tensor: comm_func.all_gather_into_tensor(tensor)[0], gathered),
}


def check_inside_another(primitive: Any, model: Model, inputs: list[Array], rank: int) -> None:
    """Assert that output and gradient of *primitive*, made inside another gradient, are those of *model*."""
    outputs, gradients = [], []
    expected = model([2 * each for each in inputs])[rank]
    weights = mindspore.Tensor(weights_for(rank, expected))

    def inner(tensor: Any) -> Any:
        outputs.append(primitive(tensor * 2))
        return (outputs[-1] * weights).sum()

    def outer(tensor: Any) -> Any:
        reduced = ops.AllReduce()(tensor)
        gradients.append(mindspore.grad(inner)(tensor))
        return (gradients[-1] * reduced).sum()

    mindspore.grad(outer)(make("mindspore", inputs[rank]))
    check("mindspore", outputs[0], expected)
    np.testing.assert_allclose(gradients[0].asnumpy(), slope(model, inputs, rank), rtol=2e-4, atol=2e-4)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("name", CASES)
def test_a_collective_inside_another_gradient(rank: int, world_size: int, name: str) -> None:
    make_it, model = CASES[name]
    with world():
        inputs = [numbers(other, (world_size, 2 * world_size)) for other in range(world_size)]
        check_inside_another(make_it(rank, world_size), model, inputs, rank)


def raises_within_a_gradient(rank: int) -> None:
    """Leave MindSpore recording, as an exception in what it differentiates does."""

    def loss(tensor: Any) -> Any:
        return (ops.AllReduce()(tensor) * ops.AllReduce()(tensor[: 1 + rank])).sum()

    with pytest.raises(MismatchError):
        mindspore.grad(loss)(make("mindspore", numbers(rank, 3)))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dims", [(0, 0), (1, 0)])
def test_a_collective_after_an_error_inside_a_gradient(rank: int, world_size: int, dims: tuple[int, int]) -> None:
    with world():
        raises_within_a_gradient(rank)
        inputs = [numbers(other, (world_size, 2 * world_size)) for other in range(world_size)]
        expected = blocks(*dims)([2 * each for each in inputs])[rank]
        outputs = []

        def loss(tensor: Any) -> Any:
            outputs.append(ops.AlltoAll(world_size, *dims)(tensor * 2))
            return (ops.AllReduce()(outputs[-1]) * mindspore.Tensor(weights_for(rank, expected))).sum()

        def model(given: Any) -> Any:
            return summed(blocks(*dims)(given))

        gradient = mindspore.grad(loss)(make("mindspore", inputs[rank]))
        check("mindspore", outputs[0], expected)
        np.testing.assert_allclose(gradient.asnumpy(), slope(model, inputs, rank), rtol=2e-4, atol=2e-4)
