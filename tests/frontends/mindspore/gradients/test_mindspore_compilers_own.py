"""The primitives that MindSpore's graph compiler uses: those of hosts, the mirror operators, and the one that accumulates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_slopes import Accumulating, Array, check_slope
from mindspore_world import MODES, check, in_mode, make, numbers, world

import shim.frontends.mindspore.mint.distributed as dist
from shim.frontends.mindspore import ops
from shim.frontends.mindspore.ops.operations import comm_ops


class Weighted(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def __init__(self, primitive: Any, weights: Array) -> None:
        super().__init__()
        self.primitive = primitive
        self.weights = mindspore.Tensor(weights)

    def construct(self, tensor: Any) -> Any:
        return (self.primitive(tensor) * self.weights).sum()


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
def test_hosts(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        inputs = [numbers(other, (6, 2)) for other in range(3)]
        everyone = (0, 1, 2)
        check_slope(comm_ops._HostAllGather(everyone), lambda given: [np.concatenate(given)] * 3, inputs, rank)
        for op, combine in (("sum", np.sum), ("avg", np.mean)):
            primitive = comm_ops._HostReduceScatter(op, everyone)
            check_slope(primitive, lambda given, how=combine: np.split(how(given, axis=0), 3), inputs, rank)
        if rank != 1:
            gathered = comm_ops._HostAllGather([0, 2])(make("mindspore", numbers(rank, (2, 3))))
            check("mindspore", gathered, np.concatenate([numbers(0, (2, 3)), numbers(2, (2, 3))]))


@pytest.mark.ranks(2)
def test_groups_of_hosts(rank: int, world_size: int) -> None:
    with world():
        for kind in (comm_ops._HostAllGather, comm_ops._HostReduceScatter):
            for group, error in ((None, ValueError), ([0], ValueError), ([0, 8], ValueError), ([0, "1"], TypeError)):
                with pytest.raises(error, match="group"):
                    kind(group=group)
            with pytest.raises(TypeError, match="group must be a list"):
                kind(group="hccl_world_group")
        with pytest.raises(TypeError, match="op must be one of"):
            comm_ops._HostReduceScatter("mean", [0, 1])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mean", [None, True])
def test_the_mirror_operator(rank: int, world_size: int, mode: str, mean: bool | None, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        primitive = comm_ops._MirrorOperator("hccl_world_group", world_size, mean)
        value, gradient = mindspore.value_and_grad(Weighted(primitive, numbers(rank, (2, 3))))(
            make("mindspore", numbers(9, (2, 3)))
        )
        assert float(value) == float((numbers(9, (2, 3)) * numbers(rank, (2, 3))).sum())
        total = sum(numbers(other, (2, 3)) for other in range(world_size))
        np.testing.assert_allclose(gradient.asnumpy(), total / world_size if mean else total, rtol=1e-6)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
def test_a_mirror_for_one_rank_is_none(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    with in_mode(mode, tmp_path):
        network = Weighted(comm_ops._MirrorOperator(dev_num=1), numbers(rank, 3))
        check("mindspore", mindspore.grad(network)(make("mindspore", numbers(0, 3))), numbers(rank, 3))
        with pytest.raises(TypeError, match="dev_num must be an int"):
            mindspore.grad(Weighted(comm_ops._MirrorOperator(), numbers(rank, 3)))(make("mindspore", numbers(0, 3)))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mirror", [True, False])
def test_the_mirror_of_mini_steps(rank: int, world_size: int, mode: str, mirror: bool, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        primitive = comm_ops._MirrorMiniStepOperator("hccl_world_group", 2, True, 4)
        primitive.do_mirror = mirror
        network = Accumulating(primitive, numbers(rank, 3), np.full(3, rank + 1, "float32"))
        found = mindspore.grad(network)(make("mindspore", numbers(9, 3)))
        own = numbers(rank, 3)
        check("mindspore", found, (numbers(0, 3) + numbers(1, 3) + 3 if mirror else own) / np.float32(2))
        np.testing.assert_array_equal(network.accumulator.asnumpy(), rank + 1 + own * mirror)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mean", [False, True])
def test_the_mirror_of_micro_steps(rank: int, world_size: int, mode: str, mean: bool, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        primitive = comm_ops._MirrorMicroStepOperator("hccl_world_group", 2, mean)
        network = Accumulating(primitive, numbers(rank, 3), numbers(rank + 3, 3))
        check("mindspore", mindspore.grad(network)(make("mindspore", numbers(9, 3))), np.ones(3, "float32"))
        total = numbers(3, 3) + numbers(4, 3)
        np.testing.assert_array_equal(network.accumulator.asnumpy(), total / 2 if mean else total)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
def test_the_one_that_accumulates(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        tensor, weights, accumulated = make("mindspore", numbers(9, 4)), numbers(rank, 4), numbers(5, 4)
        network = Accumulating(comm_ops._VirtualAssignAdd(), weights, accumulated)
        check("mindspore", mindspore.grad(network)(tensor), np.zeros(4, "float32"))
        np.testing.assert_array_equal(network.accumulator.asnumpy(), accumulated + weights)
        reducing = comm_ops._VirtualAssignAdd().add_prim_attr("group", "hccl_world_group")
        network = Adding(reducing, weights, accumulated[:2])
        check("mindspore", mindspore.grad(network)(tensor), np.zeros(4, "float32"))
        mine = (numbers(0, 4) + numbers(1, 4))[2 * rank : 2 * rank + 2]
        np.testing.assert_array_equal(network.accumulator.asnumpy(), accumulated[:2] + mine)


class Adding(Accumulating):
    pass


def test_they_work_without_a_world_and_with_other_tensors() -> None:
    array = numbers(0, 3)
    check("numpy", comm_ops._MirrorOperator()(array), array)
    check("numpy", comm_ops._VirtualAssignAdd()(array, array), array)
    with pytest.raises(TypeError, match="must be called with x and y"):
        comm_ops._VirtualAssignAdd()(array)


@pytest.mark.ranks(2)
def test_their_names_are_where_mindspore_has_them(rank: int, world_size: int) -> None:
    assert ops._AllSwap is comm_ops._AllSwap
    assert dist.is_available()
