"""NeighborExchange and NeighborExchangeV2: what arrives from where, and the gradients that go back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_slopes import Array, check_slope
from mindspore_world import COMPILED, MODES, MODES_AND_DTYPES, Network, check, in_mode, make, numbers, world

import shim.frontends.mindspore.mint.distributed as dist
from shim.errors import ArgumentError, RankError, ShimError, UnsupportedError
from shim.frontends.mindspore import ops

NONE = [-1] * 8
DIRECTIONS = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))


class RingOfTwo(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    """Send rows to the right and columns to the left; return what comes as one tensor."""

    def __init__(self, rank: int, world_size: int) -> None:
        super().__init__()
        right, left = (rank + 1) % world_size, (rank - 1) % world_size
        self.exchange = ops.NeighborExchange(
            [right, left], [left, right], ([2, 3], [6]), ([2, 3], [6]), mindspore.float32
        )
        self.both = mindspore.ops.Concat()

    def construct(self, tensor: Any) -> Any:
        first, second = self.exchange((tensor, (tensor * tensor).reshape((-1,))))
        return self.both((first.reshape((-1,)), second))


def ring(given: Any) -> list[Array]:
    return [
        np.concatenate([given[rank - 1].ravel(), given[(rank + 1) % len(given)].ravel() ** 2])
        for rank in range(len(given))
    ]


def neighbors(rank: int, rows: int, columns: int) -> list[int]:
    """Return the ranks around *rank*, of a grid whose rows are numbered first, and -1 outside of it."""
    y, x = divmod(rank, columns)
    return [
        (y + dy) * columns + x + dx if 0 <= y + dy < rows and 0 <= x + dx < columns else -1 for dy, dx in DIRECTIONS
    ]


def surrounded(given: Any, rows: int, columns: int, lens: tuple[int, int]) -> list[Array]:
    """Cut windows out of the whole image: each rank's part and *lens* rows and columns around it, 0 outside the image."""
    whole = np.concatenate(
        [np.concatenate(given[y * columns : (y + 1) * columns], axis=3) for y in range(rows)], axis=2
    )
    height, width = given[0].shape[2:]
    tall, wide = lens
    padded = np.pad(whole, ((0, 0), (0, 0), (tall, tall), (wide, wide)))
    return [
        padded[:, :, y * height : (y + 1) * height + 2 * tall, x * width : (x + 1) * width + 2 * wide]
        for y, x in (divmod(rank, columns) for rank in range(rows * columns))
    ]


def borders(rank: int, rows: int, columns: int, lens: tuple[int, int]) -> Any:
    around, sizes = neighbors(rank, rows, columns), [lens[0], lens[0], lens[1], lens[1]]
    return ops.NeighborExchangeV2(around, sizes, around, sizes, "NCHW")


@pytest.mark.ranks(1, 3)
@pytest.mark.parametrize("mode", MODES)
def test_around_the_ring(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        inputs = [numbers(other, (2, 3)) for other in range(world_size)]
        check("mindspore", RingOfTwo(rank, world_size)(make("mindspore", inputs[rank])), ring(inputs)[rank])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_other_tensors(rank: int, world_size: int, kind: str) -> None:
    with world():
        right, left = (rank + 1) % 3, (rank - 1) % 3
        dtype: Any = np.float32
        if kind == "torch":
            import torch

            dtype = torch.float32
        exchange = ops.NeighborExchange([right], [left], [(2, 3)], [(2, 3)], dtype)
        (result,) = exchange((make(kind, numbers(rank, (2, 3))),))
        check(kind, result, numbers(left, (2, 3)))
        image = make(kind, numbers(rank, (1, 2, 2, 3)))
        inputs = [numbers(other, (1, 2, 2, 3)) for other in range(3)]
        check(kind, borders(rank, 3, 1, (1, 0))(image), surrounded(inputs, 3, 1, (1, 0))[rank])


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
def test_the_documented_example(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    """MindSpore's, completed: its ranks send (3, 3) and receive (2, 2), which cannot both be."""
    with world(), in_mode(mode, tmp_path):
        shapes = ([3, 3], [2, 2])
        mine, other = shapes[rank], shapes[1 - rank]
        exchange = ops.NeighborExchange(
            send_rank_ids=[1 - rank],
            recv_rank_ids=[1 - rank],
            recv_shapes=(other,),
            send_shapes=(mine,),
            recv_type=mindspore.float32,
        )
        (output,) = Network(exchange)((make("mindspore", np.full(mine, rank + 1, "float32")),))
        check("mindspore", output, np.full(other, 2 - rank, "float32"))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
def test_the_documented_example_of_borders(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        ranks, lens = [0, *NONE[1:]], [1, 0, 0, 0]
        if rank == 0:
            ranks, lens = [-1, -1, -1, -1, 1, -1, -1, -1], [0, 1, 0, 0]
        exchange = ops.NeighborExchangeV2(
            send_rank_ids=ranks, send_lens=lens, recv_rank_ids=ranks, recv_lens=lens, data_format="NCHW"
        )
        output = Network(exchange)(make("mindspore", np.full((1, 1, 2, 2), rank + 1, "float32")))
        rows = [[1, 1], [2, 2], [2, 2]] if rank else [[1, 1], [1, 1], [2, 2]]
        check("mindspore", output, np.array([[rows]], "float32"))


@pytest.mark.ranks(1, 4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("lens", [(1, 1), (2, 1), (0, 2)])
def test_borders(rank: int, world_size: int, mode: str, lens: tuple[int, int], tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        rows, columns = (2, 2) if world_size == 4 else (1, world_size)
        inputs = [numbers(other, (2, 3, 4, 3)) for other in range(world_size)]
        output = Network(borders(rank, rows, columns, lens))(make("mindspore", inputs[rank]))
        check("mindspore", output, surrounded(inputs, rows, columns, lens)[rank])


@pytest.mark.ranks(9)
def test_eight_neighbors(rank: int, world_size: int) -> None:
    with world():
        inputs = [numbers(other, (1, 2, 3, 4)) for other in range(9)]
        output = borders(rank, 3, 3, (2, 1))(make("mindspore", inputs[rank]))
        check("mindspore", output, surrounded(inputs, 3, 3, (2, 1))[rank])


@pytest.mark.ranks(2)
def test_lengths_of_sides_may_differ(rank: int, world_size: int) -> None:
    """Rank 0 is left of rank 1, sends 2 columns to it, and gets 1; at the top, where nobody is, 3 rows are 0."""
    with world():
        mine = ([-1, -1, 1, -1, -1, -1, -1, -1], [0, 0, 0, 2], [3, 0, 0, 1])
        theirs = ([-1, -1, -1, -1, -1, -1, 0, -1], [0, 0, 1, 0], [0, 0, 2, 0])
        ranks, send_lens, recv_lens = theirs if rank else mine
        inputs = [numbers(other, (1, 1, 2, 3)) for other in range(2)]
        output = ops.NeighborExchangeV2(ranks, send_lens, ranks, recv_lens, "NCHW")(make("mindspore", inputs[rank]))
        both = np.concatenate(inputs, axis=3)
        expected = both[..., 1:] if rank else np.pad(both[..., :4], ((0, 0), (0, 0), (3, 0), (0, 0)))
        check("mindspore", output, expected)


@pytest.mark.ranks(2)
@pytest.mark.parametrize(("mode", "dtype"), MODES_AND_DTYPES)
def test_every_dtype(rank: int, world_size: int, mode: str, dtype: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        tensor = make("mindspore", numbers(rank, (1, 1, 2, 3), dtype), dtype)
        inputs = [numbers(other, (1, 1, 2, 3), dtype) for other in range(2)]
        check("mindspore", Network(borders(rank, 2, 1, (1, 0)))(tensor), surrounded(inputs, 2, 1, (1, 0))[rank], dtype)
        other = 1 - rank
        exchange = ops.NeighborExchange([other], [other], [(1, 1, 2, 3)], [(1, 1, 2, 3)], tensor.dtype)
        if (mode, dtype) == (COMPILED, "bfloat16"):
            with pytest.raises(TypeError, match="Select CPU operator"):  # MindSpore has no Reshape of it on the CPU
                Network(exchange)((tensor,))
        else:
            check("mindspore", Network(exchange)((tensor,))[0], inputs[other], dtype)


@pytest.mark.ranks(3)
def test_ranks_are_those_of_the_group(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group([1, 2])
        if rank:
            exchange = ops.NeighborExchange([2 - rank], [2 - rank], [(3,)], [(3,)], mindspore.float32, group)
            check("mindspore", exchange((make("mindspore", numbers(rank, 3)),))[0], numbers(3 - rank, 3))


@pytest.mark.ranks(1, 3)
@pytest.mark.parametrize("mode", MODES)
def test_the_gradient_around_the_ring(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        inputs = [numbers(other, (2, 3)) % 7 for other in range(world_size)]
        check_slope(RingOfTwo(rank, world_size), ring, inputs, rank)


@pytest.mark.ranks(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("lens", [(1, 1), (2, 1)])
def test_the_gradient_of_borders(rank: int, world_size: int, mode: str, lens: tuple[int, int], tmp_path: Path) -> None:
    """Rows may be sent to more than one neighbour, so that their gradients come back from several."""
    with world(), in_mode(mode, tmp_path):
        rows, columns = (2, 2) if world_size == 4 else (1, world_size)
        inputs = [numbers(other, (1, 1, 3, 2)) for other in range(world_size)]
        check_slope(
            borders(rank, rows, columns, lens), lambda given: surrounded(given, rows, columns, lens), inputs, rank
        )


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_other_dtypes(rank: int, world_size: int, dtype: str, mode: str, tmp_path: Path) -> None:
    class Summed(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
        def __init__(self) -> None:
            super().__init__()
            self.borders = borders(rank, 2, 1, (1, 0))

        def construct(self, tensor: Any) -> Any:
            return self.borders(tensor).astype(mindspore.float32).sum()

    with world(), in_mode(mode, tmp_path):
        gradient = mindspore.grad(Summed())(make("mindspore", numbers(rank, (1, 1, 2, 3), dtype), dtype))
        expected = np.ones((1, 1, 2, 3), "float32" if dtype == "bfloat16" else dtype)
        expected[:, :, 0 if rank else 1] = 2
        check("mindspore", gradient, expected, dtype)


class OnlySending(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def __init__(self) -> None:
        super().__init__()
        self.exchange = ops.NeighborExchange([1], [], [], [(3,)], mindspore.float32)

    def construct(self, tensor: Any) -> Any:
        self.exchange((tensor,))
        return tensor.sum()


class OnlyReceiving(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def __init__(self) -> None:
        super().__init__()
        self.exchange = ops.NeighborExchange([], [0], [(3,)], [], mindspore.float32)

    def construct(self, tensor: Any) -> Any:
        return (self.exchange(())[0] * tensor).sum()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
def test_one_way(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    """Who only sends or only receives has no way for a gradient, and what is compiled may be asked for one."""
    network = OnlyReceiving if rank else OnlySending
    with world(), in_mode(mode, tmp_path):
        tensor = make("mindspore", numbers(0, 3))
        if mode == COMPILED:
            with pytest.raises(UnsupportedError, match="cannot be in a compiled graph on a rank that only"):
                network()(tensor)
        else:
            assert float(network()(tensor)) == float((numbers(0, 3) ** (1 + rank)).sum())
            with pytest.raises(UnsupportedError, match="has no gradient on a rank that only"):
                mindspore.grad(network())(tensor)


@pytest.mark.ranks(2)
def test_wrong_arguments(rank: int, world_size: int, tmp_path: Path) -> None:
    f32, other = mindspore.float32, 1 - rank
    around, lens = [other, *NONE[1:]], [1, 0, 0, 0]
    with world():
        for make_it in (
            lambda: ops.NeighborExchange(1, [1], [(2,)], [(2,)], f32),
            lambda: ops.NeighborExchange([1], ["1"], [(2,)], [(2,)], f32),
            lambda: ops.NeighborExchange([1], [1], [2], [(2,)], f32),
            lambda: ops.NeighborExchange([1], [1], [(2,)], (2,), f32),
            lambda: ops.NeighborExchange([1], [1], [(2,)], [(2,)], "float32"),
            lambda: ops.NeighborExchange([1], [1], [(2,)], [(2,)], f32, 5),
            lambda: ops.NeighborExchangeV2(1, lens, around, lens, "NCHW"),
            lambda: ops.NeighborExchangeV2(around, 1, around, lens, "NCHW"),
            lambda: ops.NeighborExchangeV2(around, lens, 1, lens, "NCHW"),
            lambda: ops.NeighborExchangeV2(around, lens, around, 1, "NCHW"),
            lambda: ops.NeighborExchangeV2(around, lens, around, lens, 1),
            lambda: ops.NeighborExchangeV2(around, lens, around, lens, "NCHW", 1),
        ):
            with pytest.raises(TypeError, match=r"mindspore\.ops\."):
                make_it()
        for make_it, what in (
            (lambda: ops.NeighborExchange([1], [1], [(2,), (2,)], [(2,)], f32), "recv_shapes must be as many"),
            (lambda: ops.NeighborExchange([1, 1], [1], [(2,)], [(2,)], f32), "send_shapes must be as many"),
            (lambda: ops.NeighborExchangeV2([-2, *NONE[1:]], lens, around, lens, "NCHW"), "below -1"),
            (lambda: ops.NeighborExchangeV2([1, 1, *NONE[2:]], lens, around, lens, "NCHW"), "a rank twice"),
            (lambda: ops.NeighborExchangeV2(around[1:], lens, around, lens, "NCHW"), "must have 8 elements"),
            (lambda: ops.NeighborExchangeV2(around, [-1, 0, 0, 0], around, lens, "NCHW"), "below 0"),
            (lambda: ops.NeighborExchangeV2(around, lens, around, lens, "NHWC"), "must be 'NCHW'"),
        ):
            with pytest.raises(ArgumentError, match=what):
                make_it()
        tensor = make("mindspore", numbers(rank, (2, 3)))
        with pytest.raises(ArgumentError, match="must be tensors of send_shapes"):
            ops.NeighborExchange([other], [other], [(2,)], [(2,)], f32)((tensor,))
        with pytest.raises(RankError, match="2"):
            ops.NeighborExchange([2], [other], [(2, 3)], [(2, 3)], f32)((tensor,))
        with pytest.raises((ArgumentError, ShimError), match="four dimensions"):
            ops.NeighborExchangeV2(around, lens, around, lens, "NCHW")(tensor)
        with pytest.raises(TypeError, match="must be a tuple of tensors"):
            ops.NeighborExchange([other], [other], [(2,)], [(2,)], f32)(tensor)
        with in_mode(COMPILED, tmp_path), pytest.raises(ArgumentError, match="must be tensors of send_shapes"):
            Network(ops.NeighborExchange([other], [other], [(2,)], [(2,)], f32))((tensor,))
