"""The primitives of mindspore.ops, called as they are: what they return, for every kind of tensor, and what they hold."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_world import KINDS, REDUCTIONS, SOME_DTYPES, check, make, numbers, of_all, world

from shim.frontends.mindspore import ops
from shim.frontends.mindspore.ops.operations import comm_ops


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["AllGather", "_MiniStepAllGather", "_MicroStepAllGather"])
def test_gathering(rank: int, world_size: int, kind: str, name: str) -> None:
    with world():
        primitive = getattr(ops, name)()
        tensor = make(kind, numbers(rank, (2, 3)))
        accumulator = [make(kind, np.zeros((2 * world_size, 3), "float32"))] * (name != "AllGather")
        check(kind, primitive(tensor, *accumulator), np.concatenate(of_all(world_size, (2, 3))))
        check(kind, tensor, numbers(rank, (2, 3)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sequence", [tuple, list])
def test_broadcast(rank: int, world_size: int, kind: str, sequence: Any) -> None:
    with world():
        for root in range(world_size):
            tensors = sequence([make(kind, numbers(rank, (2, 3))), make(kind, numbers(rank + 5, 4, "int32"))])
            result = ops.Broadcast(root)(tensors)
            assert isinstance(result, tuple)
            check(kind, result[0], numbers(root, (2, 3)))
            check(kind, result[1], numbers(root + 5, 4, "int32"))
            check(kind, tensors[0], numbers(rank, (2, 3)))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", SOME_DTYPES)
def test_dtypes(rank: int, world_size: int, dtype: str) -> None:
    with world():
        tensor = make("mindspore", numbers(rank, (2, 3), dtype), dtype)
        check("mindspore", ops.AllGather()(tensor), np.concatenate(of_all(2, (2, 3), dtype)), dtype)
        check("mindspore", ops.Broadcast(1)((tensor,))[0], numbers(1, (2, 3), dtype), dtype)
        total = np.sum(of_all(2, (2, 3), dtype), axis=0).astype(numbers(0, 1, dtype).dtype)
        check("mindspore", ops.ReduceScatter()(tensor), total[rank : rank + 1], dtype)
        gathered = ops.CollectiveGather(0)(tensor)
        expected = np.concatenate(of_all(2, (2, 3), dtype)) if rank == 0 else np.zeros(1, total.dtype)
        check("mindspore", gathered, expected, dtype)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_empty_tensors(rank: int, world_size: int, shape: tuple[int, ...]) -> None:
    with world():
        result = ops.AllGather()(make("mindspore", np.zeros(shape, "float32")))
        check("mindspore", result, np.zeros((2 * shape[0], *shape[1:]), "float32"))


@pytest.mark.ranks(2)
def test_views_and_parameters(rank: int, world_size: int) -> None:
    with world():
        turned = make("mindspore", numbers(rank, (3, 2))).transpose(1, 0)
        check("mindspore", ops.AllGather()(turned), np.concatenate([part.T for part in of_all(2, (3, 2))]))
        parameter = mindspore.Parameter(make("mindspore", numbers(rank, 3)), name="parameter")
        for result in (ops.AllGather()(parameter), ops.Broadcast(0)((parameter,))[0]):
            assert not isinstance(result, mindspore.Parameter)


@pytest.mark.ranks(2)
def test_a_micro_step_without_group_does_not_communicate(rank: int, world_size: int) -> None:
    tensor = make("mindspore", numbers(rank, (2, 3)))
    primitive = ops._MicroStepAllGather("")
    assert (primitive.rank_size, primitive.do_mirror) == (1, False)
    result = primitive(tensor, tensor)
    check("mindspore", result, numbers(rank, (2, 3)))
    assert result.data_ptr() != tensor.data_ptr()


@pytest.mark.ranks(2)
def test_attributes(rank: int, world_size: int) -> None:
    with world():
        gather = ops.AllGather()
        assert isinstance(gather, mindspore.ops.Primitive)
        assert isinstance(gather, ops.AllGather)
        assert type(gather).__name__ == gather.name == "AllGather"
        assert (gather.group, gather.rank, gather.rank_size) == ("hccl_world_group", rank, world_size)
        assert (gather.fusion, gather.mean_flag) == (0, False)
        assert gather.add_prim_attr("mean_flag", True) is gather
        assert gather.mean_flag
        assert gather.get_attr_dict()["mean_flag"]
        mini = ops._MiniStepAllGather(grad_accumulation_step=4, mean_flag=True)
        assert (mini.grad_accumulation_step, mini.mean_flag, mini.fusion) == (4, True, 1)
        assert (mini.do_mirror, mini.add_accu, mini.gradient_shard) == (True, False, False)
        micro = ops._MicroStepAllGather()
        assert (micro.do_mirror, micro.with_mirror_operator, micro.mean_flag) == (True, True, None)
        assert (ops.CollectiveGather(1).dest_rank, ops.Broadcast(1).root_rank) == (1, 1)


@pytest.mark.ranks(2)
def test_copies(rank: int, world_size: int) -> None:
    with world():
        gather = ops._MiniStepAllGather()
        gather.do_mirror = False
        gather.add_prim_attr("add_accu", True)
        copied = copy.deepcopy(gather)
        assert type(copied) is type(gather)
        assert (copied.do_mirror, copied.add_accu, copied.group) == (False, True, gather.group)
        accumulator = np.zeros((4, 3), "float32")
        check("numpy", copied(numbers(rank, (2, 3)), accumulator), np.concatenate(of_all(2, (2, 3))))
        check("numpy", copy.deepcopy(ops.Broadcast(1))((numbers(rank, 2),))[0], numbers(1, 2))


@pytest.mark.ranks(2)
def test_the_same_kernel_serves_all_alike(rank: int, world_size: int) -> None:
    """MindSpore never forgets a kernel, so a primitive made in a loop must not be a new one."""
    with world():
        first, second, other = ops.AllGather(), ops.AllGather(), ops.AllGather("nccl_world_group")
        assert first.fn_id == second.fn_id != other.fn_id


@pytest.mark.ranks(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_world_of_one(rank: int, world_size: int, kind: str) -> None:
    with world():
        tensor = make(kind, numbers(rank, (4, 3)))
        check(kind, ops.AllGather()(tensor), np.concatenate(of_all(world_size, (4, 3))))
        rows = slice(rank * 4 // world_size, (rank + 1) * 4 // world_size)
        check(kind, ops.ReduceScatter()(tensor), sum(of_all(world_size, (4, 3)))[rows])
        check(kind, ops.Broadcast(world_size - 1)((tensor,))[0], numbers(world_size - 1, (4, 3)))


def test_names_are_where_mindspore_has_them() -> None:
    assert comm_ops.AllGather is ops.AllGather
    assert comm_ops._MicroStepAllGather is ops._MicroStepAllGather
    assert [getattr(ops.ReduceOp, name) for name in ("SUM", "PROD", "MIN", "MAX", "AVG")] == list(REDUCTIONS)


def test_mindspore_is_not_imported() -> None:
    program = (
        "import sys, numpy; from shim.frontends.mindspore import ops; from shim.frontends.mindspore.communication import init;"
        "import shim.frontends.mindspore.mint.distributed as dist; init();"
        "gathered = ops.AllGather()(numpy.ones((2, 3))); broadcast, = ops.Broadcast(0)((gathered,));"
        "dist.all_reduce(broadcast); print(broadcast.sum(), 'mindspore' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert ended.stdout == "6.0 False\n"
