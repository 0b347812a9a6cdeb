"""The functions of mint.distributed give what MindSpore documents, on every rank, with several kinds of tensors."""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_world import KINDS, check, make, numbers, of_all, world

import shim.frontends.mindspore.mint.distributed as dist
from shim.frontends.mindspore.communication.comm_func import CommHandle


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_all_gather_into_tensor_stacked(rank: int, world_size: int, kind: str) -> None:
    with world():
        output = make(kind, np.zeros((world_size, 2, 3), "float32"))
        assert dist.all_gather_into_tensor(output, make(kind, numbers(rank, (2, 3)))) is None
        check(kind, output, np.stack(of_all(world_size, (2, 3))))


@pytest.mark.ranks(3)
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
def test_frameworks_meet(rank: int, world_size: int) -> None:
    """One rank's tensors are MindSpore's, the other's NumPy's."""
    kind = ("mindspore", "numpy")[rank]
    with world():
        output = make(kind, np.zeros((4, 3), "float32"))
        dist.all_gather_into_tensor(output, make(kind, numbers(rank, (2, 3))))
        check(kind, output, np.concatenate([numbers(0, (2, 3)), numbers(1, (2, 3))]))
