"""The reducing and the rooted primitives: what they return, and the gradients of the sum of all ranks' losses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_slopes import Array, Weighted, check_slope
from mindspore_world import (
    COMPILED,
    MODES,
    MODES_AND_DTYPES,
    REDUCTIONS,
    Network,
    check,
    in_mode,
    make,
    numbers,
    of_all,
    world,
)

import shim.frontends.mindspore.mint.distributed as dist
from shim.errors import ArgumentError, MismatchError, RankError, UnsupportedError
from shim.frontends.mindspore import ops

NOTHING = np.zeros(1)


def scrambled(world_size: int, shape: Any) -> list[Array]:
    """Return inputs of which no rank has all the maxima."""
    return [(numbers(3 * other, shape) * 7) % 11 + other / 4 for other in range(world_size)]


@pytest.mark.ranks(2)
@pytest.mark.parametrize(("mode", "dtype"), MODES_AND_DTYPES)
def test_every_dtype(rank: int, world_size: int, dtype: str, mode: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        tensor = make("mindspore", numbers(rank, (2, 3), dtype), dtype)
        total = np.sum(of_all(2, (2, 3), dtype), axis=0).astype(numbers(0, 1, dtype).dtype)
        check("mindspore", Network(ops.AllReduce())(tensor), total, dtype)
        reduced = Network(ops.Reduce(1))(tensor)
        check("mindspore", reduced, total if rank == 1 else np.zeros(1, total.dtype), dtype)
        check("mindspore", Network(ops.CollectiveScatter())(tensor), numbers(0, (2, 3), dtype)[rank : rank + 1], dtype)


@pytest.mark.ranks(2)
def test_tensors_of_one_number(rank: int, world_size: int, tmp_path: Path) -> None:
    with world():
        tensor = make("mindspore", np.array(rank + 1, "float32"))
        check("mindspore", ops.AllReduce()(tensor), np.array(3, "float32"))
        check("mindspore", ops.Broadcast(1)((tensor,))[0], np.array(2, "float32"))
        with in_mode(COMPILED, tmp_path), pytest.raises(UnsupportedError, match=r"must not have shape \(\)"):
            Network(ops.AllReduce())(tensor)


@pytest.mark.ranks(4)
def test_ranks_are_those_of_the_group(rank: int, world_size: int) -> None:
    with world():
        members = [1, 3] if rank % 2 else [0, 2]
        group, place = dist.new_group(members), members.index(rank)
        tensor = make("mindspore", numbers(rank, (2, 3)))
        total = numbers(members[0], (2, 3)) + numbers(members[1], (2, 3))
        check("mindspore", ops.AllReduce(group=group)(tensor), total)
        result = ops.Reduce(1, group=group)(tensor)
        check("mindspore", result, total if place == 1 else np.zeros(1, "float32"))
        check("mindspore", ops.CollectiveScatter(1, group)(tensor), numbers(members[1], (2, 3))[place : place + 1])


# What the reducing primitives give to each of the ranks, from the reduced tensor.
REDUCING: dict[str, tuple[Callable[[str], Any], Callable[[Array, int], list[Array]]]] = {
    "AllReduce": (ops.AllReduce, lambda whole, size: [whole] * size),
    "Reduce": (
        lambda op: ops.Reduce(1, op),
        lambda whole, size: [whole if one == 1 else NOTHING for one in range(size)],
    ),
    "ReduceScatter": (ops.ReduceScatter, lambda whole, size: np.split(whole, size)),
}


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("name", REDUCING)
def test_the_gradient_of_a_reduction(rank: int, world_size: int, mode: str, op: str, name: str, tmp_path: Path) -> None:
    primitive, given_to = REDUCING[name]

    def model(inputs: Any) -> Any:
        return given_to(REDUCTIONS[op](inputs, axis=0), world_size)

    with world(), in_mode(mode, tmp_path):
        check_slope(primitive(op), model, scrambled(world_size, (2 * world_size, 2)), rank)


class BroadcastOfTwo(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def __init__(self, root: int) -> None:
        super().__init__()
        self.broadcast = ops.Broadcast(root)

    def construct(self, tensor: Any) -> Any:
        first, second = self.broadcast((tensor, tensor * tensor))
        return first * second


# From all ranks' inputs to what each of the ranks has.
MOVING: dict[str, tuple[Callable[[], Any], Callable[[Any, int], list[Array]]]] = {
    "CollectiveScatter": (lambda: ops.CollectiveScatter(1), lambda given, size: np.split(given[1], size)),
    "CollectiveGather": (
        lambda: ops.CollectiveGather(1),
        lambda given, size: [np.concatenate(given) if other == 1 else NOTHING for other in range(size)],
    ),
    "Broadcast": (lambda: BroadcastOfTwo(1), lambda given, size: [given[1] ** 3] * size),
}


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", MOVING)
def test_the_gradient_of_a_move(rank: int, world_size: int, mode: str, name: str, tmp_path: Path) -> None:
    primitive, model = MOVING[name]
    with world(), in_mode(mode, tmp_path):
        inputs = scrambled(world_size, (2 * world_size, 2))
        check_slope(primitive(), lambda given: model(given, world_size), inputs, rank)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
def test_a_products_gradient_is_right_at_zero(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    def model(inputs: Any) -> Any:
        return [np.prod(inputs, axis=0)] * world_size

    inputs = [np.array([0.0, 0.0, 2.0, 3.0]), np.array([5.0, 0.0, 7.0, 0.0]), np.array([4.0, 2.0, 3.0, 5.0])]
    with world(), in_mode(mode, tmp_path):
        check_slope(ops.AllReduce("prod"), model, inputs, rank)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", ["max", "min"])
def test_ranks_that_share_the_extreme_share_its_gradient(
    rank: int, world_size: int, mode: str, op: str, tmp_path: Path
) -> None:
    sign = 1 if op == "max" else -1
    inputs = sign * np.array([[3, 1, 2], [3, 1, 0], [0, 1, 5]], "float32")  # shared by 2 ranks, by 3, by 1
    share = np.array([[1 / 2, 1 / 3, 0], [1 / 2, 1 / 3, 0], [0, 1 / 3, 1]], "float32")
    with world(), in_mode(mode, tmp_path):
        gradient = mindspore.grad(Weighted(ops.AllReduce(op), np.full(3, rank + 1, "float32")))
        found = gradient(make("mindspore", inputs[rank]))
        np.testing.assert_allclose(found.asnumpy(), 2 * (1 + 2 + 3) * share[rank], rtol=1e-6)


@pytest.mark.ranks(2)
def test_wrong_arguments(rank: int, world_size: int) -> None:
    with world():
        for make_it in (
            lambda: ops.AllReduce(1),
            lambda: ops.AllReduce("mean"),
            lambda: ops.AllReduce(group=3),
            lambda: ops.Reduce("0"),
            lambda: ops.Reduce(0, "mean"),
            lambda: ops.Reduce(0, group=3),
            lambda: ops.CollectiveScatter(1.0),
            lambda: ops.CollectiveScatter(group=3),
            lambda: ops.Broadcast(True),
        ):
            with pytest.raises(TypeError, match=r"mindspore\.ops\."):
                make_it()
        tensor = make("mindspore", numbers(rank, (3, 2)))
        with pytest.raises(RankError, match="dest_rank"):
            ops.Reduce(2)(tensor)
        with pytest.raises(ArgumentError, match="must have rows for 2 ranks"):
            ops.CollectiveScatter()(tensor)
        check("mindspore", ops.AllReduce()(tensor > 0), np.any([x > 0 for x in of_all(2, (3, 2))], axis=0))


@pytest.mark.ranks(2)
def test_one_ranks_mistake_is_every_ranks_error(rank: int, world_size: int) -> None:
    with world():
        tensor = make("mindspore", numbers(rank, (2, 2)))
        with pytest.raises((TypeError, MismatchError)):
            ops.AllReduce()(*[tensor] * (1 + rank))
        with pytest.raises((TypeError, MismatchError)):
            ops.Broadcast(0)((tensor,) if rank else tensor)
        with pytest.raises((ValueError, MismatchError)):
            ops.CollectiveScatter()(tensor if rank else make("mindspore", numbers(rank, (3, 2))))
        check("mindspore", ops.AllReduce()(tensor), sum(of_all(2, (2, 2))))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("lengths", [(1, 2), (2, 1), (2, 3)])
def test_tuples_of_different_lengths(
    rank: int, world_size: int, lengths: tuple[int, int], mode: str, tmp_path: Path
) -> None:
    """Without asking first, what one rank sends last would meet the other rank's next call."""
    with world(), in_mode(mode, tmp_path):
        tensor = make("mindspore", numbers(rank, (2, 2)))
        with pytest.raises(MismatchError, match=r"mindspore\.ops\.Broadcast"):
            mindspore.runtime.synchronize() or np.asarray(Network(ops.Broadcast(0))((tensor,) * lengths[rank])[0])
        check("mindspore", tensor, numbers(rank, (2, 2)))
        assert mode == COMPILED or float(ops.AllReduce()(tensor).sum()) > 0


@pytest.mark.ranks(2)
def test_a_tuple_of_one_is_one_collective(rank: int, world_size: int) -> None:
    """The other rank's is its functions' broadcast."""
    with world():
        tensor = make("mindspore", numbers(rank, (2, 2)))
        if rank == 0:
            (result,) = ops.Broadcast(1)((tensor,))
        else:
            result = tensor
            dist.broadcast(tensor, 1)
        check("mindspore", result, numbers(1, (2, 2)))
        check("mindspore", ops.AllReduce()(result), 2 * numbers(1, (2, 2)))
