"""The primitives that cut tensors: AlltoAll along any dimension, and those whose calls give the sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_slopes import Array, check_slope
from mindspore_world import COMPILED, KINDS, MODES, MODES_AND_DTYPES, Network, check, in_mode, make, numbers, world

import shim.frontends.mindspore.mint.distributed as dist
from shim.errors import ArgumentError, MismatchError, TensorError, UnsupportedError
from shim.frontends.mindspore import ops
from shim.frontends.mindspore.ops.operations import comm_ops


def counts(world_size: int) -> Array:
    """Return how many elements rank i sends to rank j; some send none to one, the last of three receives none of one."""
    table = [[0, 3, 2], [1, 2, 0], [4, 1, 1]] if world_size == 3 else [[2, 3, 1, 2], [1, 1, 2, 3]]
    return np.array(table)[:world_size, :world_size]


def parts(world_size: int) -> list[int]:
    return [3, 1, 2, 5][:world_size]


def pieces(array: Array, sizes: Any) -> list[Array]:
    return np.split(array, np.cumsum(sizes)[:-1])


def all_to_all(inputs: Any, table: Array) -> list[Array]:
    sent = [pieces(each, sizes) for each, sizes in zip(inputs, table, strict=True)]
    return [np.concatenate([each[rank] for each in sent]) for rank in range(len(inputs))]


def blocks_exchanged(inputs: Any, split: int, concat: int) -> list[Array]:
    sent = [np.split(each, len(inputs), axis=split) for each in inputs]
    return [np.concatenate([each[rank] for each in sent], axis=concat) for rank in range(len(inputs))]


@pytest.mark.ranks(1, 3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("split", "concat"), [(0, 0), (1, 0), (0, 2), (-1, 1), (2, 2)])
def test_all_to_all(rank: int, world_size: int, kind: str, split: int, concat: int) -> None:
    with world():
        inputs = [numbers(other, (world_size, 2 * world_size, 3 * world_size)) for other in range(world_size)]
        tensor = make(kind, inputs[rank])
        check(kind, ops.AlltoAll(world_size, split, concat)(tensor), blocks_exchanged(inputs, split, concat)[rank])
        check(kind, tensor, inputs[rank])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [1, 2])
@pytest.mark.parametrize("form", [list, tuple, mindspore.Tensor, np.array])
def test_all_to_all_v(rank: int, world_size: int, kind: str, block: int, form: Any) -> None:
    with world():
        table = counts(world_size)
        inputs = [numbers(other, block * int(table[other].sum())) for other in range(world_size)]
        sent, received = form(table[rank].tolist()), form(table[:, rank].tolist())
        result = ops.AlltoAllV(block_size=block)(make(kind, inputs[rank]), sent, received)
        check(kind, result, all_to_all(inputs, block * table)[rank])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("transpose", [False, True])
def test_all_to_all_v_c(rank: int, world_size: int, kind: str, transpose: bool) -> None:
    with world():
        table = counts(world_size)
        sent = table.T if transpose else table
        inputs = [numbers(other, 2 * int(sent[other].sum())) for other in range(world_size)]
        primitive = ops.AlltoAllVC(block_size=2, transpose=transpose)
        for matrix in (table.flatten().tolist(), table.tolist(), mindspore.Tensor(table)):
            check(kind, primitive(make(kind, inputs[rank]), matrix), all_to_all(inputs, 2 * sent)[rank])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_all_gather_v(rank: int, world_size: int, kind: str) -> None:
    with world():
        inputs = [numbers(other, size) for other, size in enumerate(parts(world_size))]
        check(kind, ops.AllGatherV()(make(kind, inputs[rank]), parts(world_size)), np.concatenate(inputs))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["sum", "max", "avg"])
def test_reduce_scatter_v(rank: int, world_size: int, kind: str, op: str) -> None:
    with world():
        sizes = parts(world_size)
        inputs = [numbers(other, sum(sizes)) for other in range(world_size)]
        whole = {"sum": np.sum, "max": np.max, "avg": np.mean}[op](inputs, axis=0).astype("float32")
        check(kind, ops.ReduceScatterV(op)(make(kind, inputs[rank]), sizes), pieces(whole, sizes)[rank])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", ["mindspore", "numpy"])
def test_all_swap(rank: int, world_size: int, kind: str) -> None:
    with world():
        table = counts(3)
        inputs = [numbers(other, (int(table[other].sum()), 4)) for other in range(world_size)]
        sent, received = (mindspore.Tensor(4 * each) for each in (table[rank], table[:, rank]))
        result = comm_ops._AllSwap()(make(kind, inputs[rank]), sent, received)
        check(kind, result, all_to_all(inputs, table)[rank])


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_arrives(rank: int, world_size: int, kind: str) -> None:
    """The documented form of nothing is a tensor of shape ()."""
    with world():
        tensor = make(kind, numbers(rank, 2))
        empty = make(kind, numbers(rank, 0))
        result = ops.AlltoAllV()(empty if rank else tensor, [0, 0] if rank else [2, 0], [0, 0] if rank else [2, 0])
        check(kind, result, np.array(0, "float32") if rank else numbers(0, 2))
        result = ops.ReduceScatterV()(tensor, [2, 0])
        check(kind, result, np.array(0, "float32") if rank else numbers(0, 2) + numbers(1, 2))
        check(kind, ops.AllGatherV()(empty if rank else tensor, [2, 0]), numbers(0, 2))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
def test_the_documented_examples(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        tensor = make("mindspore", np.array([3 * rank, 3 * rank + 1, 3 * rank + 2], "float32"))
        sizes = [2, 1] if rank else [1, 2]
        result = Network(ops.AlltoAllV())(tensor, sizes, sizes)
        check("mindspore", result, np.array([[0, 3, 4], [1, 2, 5]][rank], "float32"))
        tensor = make("mindspore", np.array([0, 1, 2], "float32") * rank)
        matrix = [[0, 3], [3, 0]]
        result = Network(ops.AlltoAllVC())(tensor, matrix)
        check("mindspore", result, np.array([[0, 1, 2], [0, 0, 0]][rank], "float32"))
        tensor = make("mindspore", np.arange(rank + 3))
        check("mindspore", Network(ops.AllGatherV())(tensor, [3, 4]), np.array([0, 1, 2, 0, 1, 2, 3]))
        tensor = make("mindspore", np.array([0, 1, 2], "float32"))
        result = Network(ops.ReduceScatterV(ops.ReduceOp.SUM))(tensor, [2, 1])
        check("mindspore", result, np.array([[0, 2], [4]][rank], "float32"))
        tensor = make("mindspore", np.ones((1, 1, 2, 1), "float32") * rank)
        result = Network(ops.AlltoAll(split_count=2, split_dim=-2, concat_dim=-1))(tensor)
        check("mindspore", result, np.array([[[[0, 1]]]], "float32"))


@pytest.mark.ranks(2)
@pytest.mark.parametrize(("mode", "dtype"), MODES_AND_DTYPES)
def test_every_dtype(rank: int, world_size: int, mode: str, dtype: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        tensor = make("mindspore", numbers(rank, (2, 2), dtype), dtype)
        inputs = [numbers(other, (2, 2), dtype) for other in range(2)]
        check("mindspore", Network(ops.AlltoAll(2, 1, 0))(tensor), blocks_exchanged(inputs, 1, 0)[rank], dtype)
        flat = make("mindspore", numbers(rank, 4, dtype), dtype)
        table = np.array([[1, 3], [2, 2]])
        expected = all_to_all([numbers(other, 4, dtype) for other in range(2)], table)[rank]
        sizes = table[rank].tolist(), table[:, rank].tolist()
        check("mindspore", Network(ops.AlltoAllV())(flat, *sizes), expected, dtype)


@pytest.mark.ranks(2)
def test_float8_moves_as_it_is(rank: int, world_size: int) -> None:
    with world():
        inputs = [numbers(other, (2, 4), "uint8") for other in range(world_size)]
        tensor = make("mindspore", inputs[rank]).view(mindspore.float8_e4m3fn)
        exchanged = ops.AlltoAll(2, 1, 0)(tensor)
        assert exchanged.dtype == mindspore.float8_e4m3fn
        check("mindspore", exchanged.view(mindspore.uint8), blocks_exchanged(inputs, 1, 0)[rank])


@pytest.mark.ranks(2)
def test_a_sparse_tensor_is_refused_on_every_rank(rank: int, world_size: int) -> None:
    with world():
        sparse = mindspore.COOTensor(mindspore.Tensor([[0, 1]]), mindspore.Tensor([1.0]), (2, 2))
        given = sparse if rank == 1 else make("mindspore", numbers(rank, (2, 2)))
        with pytest.raises(TensorError if rank == 1 else MismatchError, match="input_x must be a dense tensor"):
            ops.AlltoAll(2, 0, 0)(given)


@pytest.mark.ranks(4)
def test_subgroups(rank: int, world_size: int) -> None:
    with world():
        members = [1, 3] if rank % 2 else [0, 2]
        group, place = dist.new_group(members), members.index(rank)
        inputs = [numbers(other, 3) for other in members]
        tensor, sizes = make("mindspore", inputs[place]), [[1, 2], [2, 1]][place]
        expected = all_to_all(inputs, np.array([[1, 2], [2, 1]]))[place]
        check("mindspore", ops.AlltoAllV(group)(tensor, sizes, sizes), expected)
        check("mindspore", ops.AllGatherV(group)(tensor, [3, 3]), np.concatenate(inputs))
        check("mindspore", ops.ReduceScatterV(group=group)(tensor, [1, 2]), pieces(sum(inputs), [1, 2])[place])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("split", "concat"), [(0, 0), (1, 0), (0, -1)])
def test_the_gradient_of_all_to_all(
    rank: int, world_size: int, mode: str, split: int, concat: int, tmp_path: Path
) -> None:
    with world(), in_mode(mode, tmp_path):
        inputs = [numbers(other, (world_size, 2 * world_size)) for other in range(world_size)]
        primitive = ops.AlltoAll(world_size, split, concat)
        check_slope(primitive, lambda given: blocks_exchanged(given, split, concat), inputs, rank)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("matrix", [False, True])
def test_the_gradient_of_all_to_all_v(rank: int, world_size: int, mode: str, matrix: bool, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        table = counts(world_size)
        inputs = [numbers(other, 2 * int(table[other].sum())) for other in range(world_size)]
        primitive = ops.AlltoAllVC(block_size=2) if matrix else ops.AlltoAllV(block_size=2)
        sizes = (table.tolist(),) if matrix else (table[rank].tolist(), table[:, rank].tolist())
        check_slope(primitive, lambda given: all_to_all(given, 2 * table), inputs, rank, *sizes)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
def test_the_gradient_of_all_gather_v(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        sizes = parts(world_size)
        inputs = [numbers(other, size) for other, size in enumerate(sizes)]
        check_slope(ops.AllGatherV(), lambda given: [np.concatenate(given)] * world_size, inputs, rank, sizes)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", ["sum", "avg", "max", "prod"])
def test_the_gradient_of_reduce_scatter_v(rank: int, world_size: int, mode: str, op: str, tmp_path: Path) -> None:
    sizes = parts(world_size)
    combine: Any = {"sum": np.sum, "avg": np.mean, "max": np.max, "prod": np.prod}[op]

    def model(given: Any) -> Any:
        return pieces(combine(given, axis=0), sizes)

    with world(), in_mode(mode, tmp_path):
        inputs = [(numbers(3 * other, sum(sizes)) * 7) % 11 + other / 4 for other in range(world_size)]
        check_slope(ops.ReduceScatterV(op), model, inputs, rank, sizes)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
def test_the_gradient_of_all_swap(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        table = counts(3)
        inputs = [numbers(other, (int(table[other].sum()), 2)) for other in range(world_size)]
        sizes = (2 * table[rank]).tolist(), (2 * table[:, rank]).tolist()
        check_slope(comm_ops._AllSwap(), lambda given: all_to_all(given, table), inputs, rank, *sizes)


@pytest.mark.ranks(2)
def test_gradients_where_nothing_is_sent_or_arrives(rank: int, world_size: int) -> None:
    with world():
        exchange, empty = ops.AlltoAllV(), make("mindspore", numbers(rank, 0))
        sizes = ([0, 0], [0, 2]) if rank == 0 else ([2, 0], [0, 0])
        given = empty if rank == 0 else make("mindspore", numbers(1, 2))
        sent = [[0, 0], [2, 0]][rank]
        received = [[0, 2], [0, 0]][rank]
        assert sizes == (sent, received)

        def loss(tensor: Any) -> Any:
            return exchange(tensor * 2, sent, received).sum() * 3

        check("mindspore", mindspore.grad(loss)(given), np.full(0 if rank == 0 else 2, 6, "float32"))


@pytest.mark.ranks(2)
def test_wrong_arguments(rank: int, world_size: int) -> None:
    with world():
        for make_it in (
            lambda: ops.AlltoAll(2.0, 0, 0),
            lambda: ops.AlltoAll(2, "0", 0),
            lambda: ops.AlltoAll(2, 0, None),
            lambda: ops.AlltoAll(2, 0, 0, 5),
            lambda: ops.AlltoAllV(5),
            lambda: ops.AlltoAllV(block_size=1.5),
            lambda: ops.AlltoAllVC(block_size="1"),
            lambda: ops.AllGatherV(5),
            lambda: ops.ReduceScatterV("mean"),
            lambda: ops.ReduceScatterV(group=5),
        ):
            with pytest.raises(TypeError, match=r"mindspore\.ops\."):
                make_it()
        tensor = make("mindspore", numbers(rank, 4))
        for call, what in (
            (lambda: ops.AlltoAll(3, 0, 0)(tensor), "split_count must be 2"),
            (lambda: ops.AlltoAll(2, 1, 0)(tensor), "split_dim must be a dimension"),
            (lambda: ops.AlltoAll(2, 0, 0)(tensor[:3]), "must have rows for 2 blocks"),
            (lambda: ops.AlltoAllV()(tensor, [2], [2, 2]), "send_numel_list must have 2 elements"),
            (lambda: ops.AlltoAllV()(tensor, [2, 1], [2, 2]), r"must have shape \(3,\)"),
            (lambda: ops.AlltoAllV()(tensor, [5, -1], [2, 2]), "must not be negative"),
            (lambda: ops.AlltoAllVC()(tensor, [2, 2]), "send_count_matrix must have 4 elements"),
            (lambda: ops.AllGatherV()(tensor.reshape(2, 2), [4, 4]), r"must have shape \(4,\)"),
            (lambda: ops.ReduceScatterV()(tensor, [4]), "input_split_sizes must have 2 elements"),
        ):
            with pytest.raises(ArgumentError, match=what):
                call()
        with pytest.raises(TypeError, match="send_numel_list must be a list"):
            ops.AlltoAllV()(tensor, [2.0, 2], [2, 2])
        with pytest.raises(TypeError, match="must be called with"):
            ops.AlltoAllV()(tensor)
        check("mindspore", ops.AllGatherV()(tensor, [4, 4]), np.concatenate([numbers(0, 4), numbers(1, 4)]))


@pytest.mark.ranks(2)
def test_one_ranks_mistake_is_every_ranks_error(rank: int, world_size: int) -> None:
    with world():
        tensor = make("mindspore", numbers(rank, 4))
        with pytest.raises((TypeError, MismatchError)):
            ops.AlltoAllV()(tensor, [2, 2], [2, "2" if rank else 2])
        with pytest.raises((ValueError, MismatchError)):
            ops.AllGatherV()(tensor, [4, 4] if rank else [4, 4, 4])
        with pytest.raises(MismatchError):
            ops.AlltoAllV()(tensor, [2, 2], [2, 2] if rank else [2, 1])
        check("mindspore", ops.AllGatherV()(tensor, [4, 4]), np.concatenate([numbers(0, 4), numbers(1, 4)]))


@pytest.mark.ranks(2)
def test_sizes_that_the_compiler_does_not_know_are_refused(rank: int, world_size: int, tmp_path: Path) -> None:
    with world(), in_mode(COMPILED, tmp_path):
        tensor = make("mindspore", numbers(rank, 4))
        sizes = mindspore.Tensor([2, 2])
        with pytest.raises(UnsupportedError, match="send_numel_list must be a list or tuple of int in a compiled"):
            Network(ops.AlltoAllV())(tensor, sizes, sizes)
        with pytest.raises(UnsupportedError, match="output_split_sizes must be a list or tuple of int in a compiled"):
            Network(ops.AllGatherV())(tensor, mindspore.Tensor([4, 4]))


@pytest.mark.ranks(2)
def test_other_sizes_need_no_other_kernel(rank: int, world_size: int) -> None:
    """MindSpore never forgets a kernel, and the sizes may be others in every call, as in a mixture of experts."""
    from shim.frontends.mindspore._primitives import compiled

    with world():
        exchange, before = ops.AlltoAllV(), compiled._kernel.cache_info().currsize
        for size in range(1, 9):
            tensor, sizes = make("mindspore", numbers(rank, 2 * size)), [size, size]
            gradient = mindspore.grad(lambda given, sizes=sizes: (exchange(given, sizes, sizes) * 3).sum())
            check("mindspore", gradient(tensor), np.full(2 * size, 3, "float32"))
        assert compiled._kernel.cache_info().currsize == before
