"""The primitives' gradients are MindSpore's, in PyNative mode and compiled, on every rank, checked with NumPy's arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_slopes import Accumulating, Array, Weighted
from mindspore_world import COMPILED, MODES, check, in_mode, make, numbers, world

import shim.frontends.mindspore.mint.distributed as dist
from shim.frontends.mindspore import ops


def weights_of(rank: int, world_size: int) -> Array:
    return numbers(rank, (2 * world_size, 3)) * (rank + 1)


def scattered(rank: int, parts: list[Array]) -> Array:
    return np.sum(parts, axis=0)[2 * rank : 2 * rank + 2]


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mean", [False, True])
def test_all_gather(rank: int, world_size: int, mode: str, mean: bool, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        primitive = ops.AllGather().add_prim_attr("mean_flag", mean)
        network = Weighted(primitive, weights_of(rank, world_size))
        value, gradient = mindspore.value_and_grad(network)(make("mindspore", numbers(rank, (2, 3))))
        gathered = np.concatenate([numbers(other, (2, 3)) for other in range(world_size)])
        check("mindspore", value, np.float32((2 * gathered * weights_of(rank, world_size)).sum()).reshape(()))
        expected = 2 * scattered(rank, [weights_of(other, world_size) for other in range(world_size)])
        check("mindspore", gradient, expected * np.float32(1 / world_size) if mean else expected)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
def test_reduce_scatter(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        network = Weighted(ops.ReduceScatter(), numbers(rank, (2, 3)))
        gradient = mindspore.grad(network)(make("mindspore", weights_of(rank, world_size)))
        check("mindspore", gradient, 2 * np.concatenate([numbers(other, (2, 3)) for other in range(world_size)]))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
def test_collective_gather(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        weights = weights_of(7, world_size) if rank == 1 else np.full(1, rank + 1, "float32")
        gradient = mindspore.grad(Weighted(ops.CollectiveGather(1), weights))(make("mindspore", numbers(rank, (2, 3))))
        check("mindspore", gradient, 2 * weights_of(7, world_size)[2 * rank : 2 * rank + 2])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mean", [None, True])
def test_mini_steps_accumulate(rank: int, world_size: int, mode: str, mean: bool | None, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        weights = [weights_of(other, world_size) for other in range(world_size)]
        accumulated = [np.full_like(weights[0], other + 1) for other in range(world_size)]
        network = Accumulating(ops._MiniStepAllGather(mean_flag=mean), weights[rank], accumulated[rank])
        for _ in range(2):
            gradient = mindspore.grad(network)(make("mindspore", numbers(rank, (2, 3))))
            accumulated = [sum_so_far + own for sum_so_far, own in zip(accumulated, weights, strict=True)]
            expected = scattered(rank, accumulated)
            check("mindspore", gradient, expected * np.float32(1 / world_size) if mean else expected)
            np.testing.assert_array_equal(network.accumulator.asnumpy(), accumulated[rank])


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("accumulate", [False, True])
def test_mini_steps_in_shards(rank: int, world_size: int, mode: str, accumulate: bool, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        primitive = ops._MiniStepAllGather(mean_flag=True).add_prim_attr("add_accu", accumulate)
        primitive.gradient_shard = True
        before = np.full((2, 3), rank + 1, "float32")
        network = Accumulating(primitive, weights_of(rank, world_size), before)
        gradient = mindspore.grad(network)(make("mindspore", numbers(rank, (2, 3))))
        expected = scattered(rank, [weights_of(other, world_size) for other in range(world_size)]) / 2
        check("mindspore", gradient, expected)
        np.testing.assert_array_equal(network.accumulator.asnumpy(), before + expected * accumulate)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mean", [None, True])
@pytest.mark.parametrize("from_gradient", [True, False])
def test_micro_steps(
    rank: int, world_size: int, mode: str, mean: bool | None, from_gradient: bool, tmp_path: Path
) -> None:
    with world(), in_mode(mode, tmp_path):
        primitive = ops._MicroStepAllGather(mean_flag=mean)
        primitive.with_mirror_operator = from_gradient
        accumulated = [numbers(other + 4, (2 * world_size, 3)) for other in range(world_size)]
        network = Accumulating(primitive, weights_of(rank, world_size), accumulated[rank])
        gradient = mindspore.grad(network)(make("mindspore", numbers(rank, (2, 3))))
        weights = [weights_of(other, world_size) for other in range(world_size)]
        expected = scattered(rank, weights if from_gradient else accumulated)
        check("mindspore", gradient, expected * np.float32(1 / world_size) if mean else expected)
        np.testing.assert_array_equal(network.accumulator.asnumpy(), accumulated[rank])


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["_MiniStepAllGather", "_MicroStepAllGather"])
def test_without_mirror_there_is_nothing_to_reduce(
    rank: int, world_size: int, mode: str, name: str, tmp_path: Path
) -> None:
    with world(), in_mode(mode, tmp_path):
        primitive = getattr(ops, name)(dist.new_group([rank]))
        primitive.do_mirror = False
        network = Accumulating(primitive, numbers(3, (2, 3)), numbers(4, (2, 3)))
        check("mindspore", mindspore.grad(network)(make("mindspore", numbers(0, (2, 3)))), numbers(3, (2, 3)))
        np.testing.assert_array_equal(network.accumulator.asnumpy(), numbers(4, (2, 3)))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "placeholder"), [("_MiniStepAllGather", 0), ("_MicroStepAllGather", 1)])
def test_the_accumulators_own_gradient_is_a_placeholder(
    rank: int, world_size: int, mode: str, name: str, placeholder: int, tmp_path: Path
) -> None:
    primitive: Any = None
    weights = make("mindspore", weights_of(rank, world_size))

    def weighted(tensor: Any, accumulator: Any) -> Any:
        return (primitive(tensor, accumulator) * weights).sum()

    with world(), in_mode(mode, tmp_path):
        primitive = getattr(ops, name)()
        accumulator = make("mindspore", np.zeros((2 * world_size, 3), "float32"))
        gradients = mindspore.grad(weighted, (0, 1))(make("mindspore", numbers(rank, (2, 3))), accumulator)
        expected = scattered(rank, [weights_of(other, world_size) for other in range(world_size)])
        check("mindspore", gradients[0], expected)
        check("mindspore", gradients[1], np.full((2 * world_size, 3), placeholder, "float32"))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
def test_a_gradients_gradient(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    """The sum of the cubes of what is gathered: every rank contributes, so the second derivative is 6 x n.

    MindSpore's compiler cannot differentiate the gradient of an operator that it must keep in order, and says so.
    """
    gather: Any = None

    def cubes(tensor: Any) -> Any:
        gathered = gather(tensor)
        return (gathered * gathered * gathered).sum()

    def slope(tensor: Any) -> Any:
        return mindspore.grad(cubes)(tensor).sum()

    with world(), in_mode(mode, tmp_path):
        gather = ops.AllGather()
        second, tensor = mindspore.grad(slope), make("mindspore", numbers(rank, (2, 3)))
        if mode == COMPILED:
            with pytest.raises(TypeError):
                second(tensor)
        else:
            check("mindspore", second(tensor), 6 * world_size * numbers(rank, (2, 3)))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_other_dtypes(rank: int, world_size: int, dtype: str, mode: str, tmp_path: Path) -> None:
    weights = make("mindspore", numbers(rank, (4, 3)))
    gather: Any = None

    def weighted(tensor: Any) -> Any:
        return (gather(tensor).astype(mindspore.float32) * weights).sum()

    with world(), in_mode(mode, tmp_path):
        gather = ops.AllGather()
        gradient = mindspore.grad(weighted)(make("mindspore", numbers(rank, (2, 3), dtype), dtype))
        expected = scattered(rank, [numbers(other, (4, 3), dtype) for other in range(world_size)])
        check("mindspore", gradient, expected, dtype)
