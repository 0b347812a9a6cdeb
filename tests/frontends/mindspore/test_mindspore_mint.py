"""The functions of mint.distributed give what MindSpore documents, on every rank, with several kinds of tensors."""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_world import DTYPES, array_of, check, make, numbers, world

import shim.frontends.mindspore.mint.distributed as dist
from shim.frontends.mindspore.communication.comm_func import CommHandle

KINDS = ("mindspore", "numpy", "torch")
REDUCTIONS = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max, "avg": np.mean}


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_all_reduce(rank: int, world_size: int, kind: str, op: str) -> None:
    with world():
        tensor = make(kind, numbers(rank, (2, 5)))
        assert dist.all_reduce(tensor, op) is None
        everything = [numbers(other, (2, 5)) for other in range(world_size)]
        check(kind, tensor, REDUCTIONS[op](everything, axis=0))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_reduce_of_every_dtype(rank: int, world_size: int, dtype: str) -> None:
    with world():
        tensor = make("mindspore", numbers(rank, (2, 3), dtype), dtype)
        dist.all_reduce(tensor)
        total = np.sum([numbers(other, (2, 3), dtype) for other in range(world_size)], axis=0)
        check("mindspore", tensor, total.astype(numbers(0, 1, dtype).dtype), dtype)


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stacked", [False, True])
def test_all_gather_into_tensor(rank: int, world_size: int, kind: str, stacked: bool) -> None:
    with world():
        shape = (world_size, 2, 3) if stacked else (2 * world_size, 3)
        output = make(kind, np.zeros(shape, "float32"))
        assert dist.all_gather_into_tensor(output, make(kind, numbers(rank, (2, 3)))) is None
        parts = [numbers(other, (2, 3)) for other in range(world_size)]
        check(kind, output, np.stack(parts) if stacked else np.concatenate(parts))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_gather_into_tensor_of_every_dtype(rank: int, world_size: int, dtype: str) -> None:
    with world():
        output = make("mindspore", np.zeros((2 * world_size, 3), numbers(0, 1, dtype).dtype), dtype)
        dist.all_gather_into_tensor(output, make("mindspore", numbers(rank, (2, 3), dtype), dtype))
        parts = [numbers(other, (2, 3), dtype) for other in range(world_size)]
        check("mindspore", output, np.concatenate(parts), dtype)


@pytest.mark.ranks(2)
def test_the_documented_example(rank: int, world_size: int) -> None:
    with world():
        input_tensor = mindspore.Tensor(np.ones([2, 8]).astype(np.float32))
        out_tensor = mindspore.Tensor(np.zeros([4, 8]).astype(np.float32))
        output = dist.all_gather_into_tensor(out_tensor, input_tensor)
        assert output is None
        check("mindspore", out_tensor, np.ones([4, 8], "float32"))


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("kind", KINDS)
def test_all_to_all_of_unequal_tensors(rank: int, world_size: int, kind: str) -> None:
    """Rank i sends i + j + 1 elements to rank j, from a tensor of another shape than that which takes them."""
    with world():
        inputs = [make(kind, numbers(rank * 10 + to, (1, rank + to + 1))) for to in range(world_size)]
        outputs = [make(kind, np.zeros(rank + source + 1, "float32")) for source in range(world_size)]
        assert dist.all_to_all(outputs, inputs) is None
        for source in range(world_size):
            check(kind, outputs[source], numbers(source * 10 + rank, rank + source + 1))


@pytest.mark.ranks(2)
def test_the_documented_all_to_all(rank: int, world_size: int) -> None:
    """A 0-d tensor goes into one of shape (), and a matrix into a vector."""
    tensor = mindspore.Tensor
    with world():
        if rank == 0:
            sent = [tensor(1.0), tensor([[2, 3], [4, 5.0]])]
            received = [tensor(0, dtype=mindspore.float32), tensor([0, 0.0])]
        else:
            sent = [tensor([2, 2.0]), tensor([4, 5, 6, 7.0])]
            received = [tensor([[0, 0.0], [0, 0]]), tensor([0, 0, 0, 0.0])]
        dist.all_to_all(received, sent)
        expected: list[Any] = [[1.0, [2.0, 2.0]], [[[2.0, 3.0], [4.0, 5.0]], [4.0, 5.0, 6.0, 7.0]]][rank]
        for tensor_received, values in zip(received, expected, strict=True):
            check("mindspore", tensor_received, np.array(values, "float32"))


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("none", [None, []])
def test_all_to_all_single_of_equal_parts(rank: int, world_size: int, kind: str, none: Any) -> None:
    with world():
        output = make(kind, np.zeros((2 * world_size, 3), "float32"))
        dist.all_to_all_single(output, make(kind, numbers(rank, (2 * world_size, 3))), none, none)
        rows = slice(2 * rank, 2 * rank + 2)
        everything = [numbers(other, (2 * world_size, 3))[rows] for other in range(world_size)]
        check(kind, output, np.concatenate(everything))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_all_to_all_single_of_unequal_parts(rank: int, world_size: int, kind: str) -> None:
    """Rank i sends rank j (i + 2 * j) % 3 rows, which is none for some; output sizes come first."""

    def rows(source: int, to: int) -> int:
        return (source + 2 * to) % 3

    with world():
        sent = [rows(rank, to) for to in range(world_size)]
        received = [rows(source, rank) for source in range(world_size)]
        output = make(kind, np.zeros((sum(received), 2), "float32"))
        dist.all_to_all_single(output, make(kind, numbers(rank, (sum(sent), 2))), received, tuple(sent))
        expected = []
        for source in range(world_size):
            start = sum(rows(source, to) for to in range(rank))
            whole = numbers(source, (sum(rows(source, to) for to in range(world_size)), 2))
            expected.append(whole[start : start + rows(source, rank)])
        check(kind, output, np.concatenate(expected))


@pytest.mark.ranks(2)
def test_asynchronous_calls_return_a_handle(rank: int, world_size: int) -> None:
    with world():
        tensor, other = make("mindspore", numbers(rank, 4)), make("numpy", numbers(rank, 5))
        first = dist.all_reduce(tensor, async_op=True)
        second = dist.all_reduce(other, "max", async_op=True)
        third = dist.barrier(async_op=True)
        for handle in (third, second, first):
            assert isinstance(handle, CommHandle)
            assert handle.wait() is None
            assert handle.wait() is None
        check("mindspore", tensor, numbers(0, 4) + numbers(1, 4))
        check("numpy", other, numbers(1, 5))
        assert CommHandle().wait() is None


@pytest.mark.ranks(2)
def test_outputs_may_be_views_and_parameters(rank: int, world_size: int) -> None:
    with world():
        base = mindspore.Tensor(np.zeros((3, 4), "float32"))
        turned = base.transpose(1, 0)
        dist.all_gather_into_tensor(turned, mindspore.Tensor(numbers(rank, (2, 3))))
        check("mindspore", base, np.concatenate([numbers(0, (2, 3)), numbers(1, (2, 3))]).T)
        row = base[1]
        dist.all_reduce(row)
        gathered = np.concatenate([numbers(0, (2, 3)), numbers(1, (2, 3))]).T
        check("mindspore", base, np.stack([gathered[0], 2 * gathered[1], gathered[2]]))
        parameter = mindspore.Parameter(mindspore.Tensor(numbers(rank, 3)), name="parameter")
        dist.all_reduce(parameter)
        np.testing.assert_array_equal(parameter.asnumpy(), numbers(0, 3) + numbers(1, 3))


@pytest.mark.ranks(2)
def test_tensors_that_are_not_there_yet(rank: int, world_size: int) -> None:
    """A tensor that is initialised when first used, and one that an operator is still computing."""
    from mindspore.common.initializer import initializer

    with world():
        lazy = initializer("ones", (2, 3), mindspore.float32)
        assert lazy.has_init
        dist.all_reduce(lazy)
        check("mindspore", lazy, np.full((2, 3), 2, "float32"))
        ones = mindspore.Tensor(np.ones((400, 400), "float32"))
        product = mindspore.mint.matmul(ones, ones * (rank + 1))
        before = product + 1
        dist.all_reduce(product)
        check("mindspore", product, np.full((400, 400), 1200, "float32"))
        check("mindspore", before, np.full((400, 400), 400 * (rank + 1) + 1, "float32"))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0)])
def test_tensors_without_rows(rank: int, world_size: int, shape: tuple[int, ...]) -> None:
    with world():
        tensor = make("mindspore", numbers(rank, shape))
        dist.all_reduce(tensor)
        check("mindspore", tensor, (numbers(0, shape) + numbers(1, shape)).astype("float32"))


@pytest.mark.ranks(2)
def test_float8_moves(rank: int, world_size: int) -> None:
    with world():
        octets = np.arange(4, dtype="uint8") + 8 * rank
        output = mindspore.Tensor(np.zeros(8, "uint8")).view(mindspore.float8_e4m3fn)
        dist.all_gather_into_tensor(output, mindspore.Tensor(octets).view(mindspore.float8_e4m3fn))
        found = array_of(output.view(mindspore.uint8))
        np.testing.assert_array_equal(found, np.concatenate([np.arange(4), np.arange(4) + 8]))


@pytest.mark.ranks(2)
def test_frameworks_meet(rank: int, world_size: int) -> None:
    """One rank's tensors are MindSpore's, the other's NumPy's."""
    kind = ("mindspore", "numpy")[rank]
    with world():
        output = make(kind, np.zeros((4, 3), "float32"))
        dist.all_gather_into_tensor(output, make(kind, numbers(rank, (2, 3))))
        check(kind, output, np.concatenate([numbers(0, (2, 3)), numbers(1, (2, 3))]))
