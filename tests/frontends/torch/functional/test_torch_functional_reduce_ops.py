"""Functional collectives that are given a ReduceOp, those that reduce and scatter a list, and waiting for several tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from rank_numbers import check, everyone, make, numbers
from torch_world import KINDS, REDUCTIONS, assert_result, assert_usable, world
from wrong_calls import assert_refused, assert_refused_on_one, named

import shim.frontends.torch.distributed as dist
import shim.frontends.torch.distributed._functional_collectives as functional
from shim.errors import UnsupportedError

pytestmark = pytest.mark.newest


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_every_function_takes_a_reduce_op(rank: int, world_size: int, kind: str, op: str) -> None:
    import torch.distributed as theirs

    with world():
        group, shape = dist.group.WORLD, (world_size, 2)
        combined = REDUCTIONS[op](everyone(world_size, shape), axis=0)
        for given in (
            getattr(dist.ReduceOp, op),
            dist.ReduceOp(getattr(dist.ReduceOp, op)),
            getattr(theirs.ReduceOp, op),
        ):
            tensor = make(kind, numbers(rank, shape))
            assert_result(kind, functional.all_reduce(tensor, given, group), combined)
            for seen in functional.all_reduce_coalesced([tensor, tensor], given, group):
                assert_result(kind, seen, combined)
            assert_result(kind, functional.reduce_scatter_single(tensor, given, 0, group), combined[rank : rank + 1])
            (seen,) = functional.reduce_scatter_single_coalesced([tensor], given, [0], group)
            assert_result(kind, seen, combined[rank : rank + 1])
            output = make(kind, np.zeros((1, 2)))
            functional.reduce_scatter_tensor_inplace(output, tensor, given)
            check(kind, output, combined[rank : rank + 1])
            functional.all_reduce_inplace(tensor, given)
            check(kind, tensor, combined)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", KINDS)
def test_premultiplied_sums(rank: int, world_size: int, kind: str) -> None:
    with world():
        group, op = dist.group.WORLD, dist.ReduceOp.PREMUL_SUM(rank + 2.0)
        tensor = make(kind, numbers(rank, (world_size, 2)))
        combined = sum((other + 2) * numbers(other, (world_size, 2)) for other in range(world_size))
        assert_result(kind, functional.all_reduce(tensor, op, group), combined)
        assert_result(kind, functional.reduce_scatter_single(tensor, op, 0, group), combined[rank : rank + 1])
        parts = [make(kind, row) for row in numbers(rank, (world_size, 2))]
        output = make(kind, np.zeros(2))
        functional.reduce_scatter_inplace(output, parts, op)
        check(kind, output, combined[rank])


@pytest.mark.ranks(2)
def test_the_gradient_of_a_premultiplied_sum_is_scaled_by_this_ranks_factor(rank: int, world_size: int) -> None:
    with world():
        tensor = torch.ones(2, requires_grad=True)
        result = functional.all_reduce(tensor, dist.ReduceOp.PREMUL_SUM(rank + 2.0), dist.group.WORLD)
        (functional.wait_tensor(result) * torch.tensor([1.0, rank + 1.0])).sum().backward()
        assert tensor.grad is not None
        assert tensor.grad.tolist() == [(rank + 2.0) * 2, (rank + 2.0) * 3]


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore")  # torch's compiler has its own
def test_a_reduce_op_in_a_graph(rank: int, world_size: int) -> None:
    with world():
        torch._dynamo.reset()

        def reduced(tensor: Any) -> Any:
            total = functional.all_reduce(tensor, dist.ReduceOp.MAX, dist.group.WORLD)
            output = functional.reduce_scatter_inplace(tensor[0] * 0, [tensor[0], tensor[1]], dist.ReduceOp.SUM)
            return functional.wait_tensors([total, output])

        given = torch.from_numpy(numbers(rank, (2, 3)))
        seen = torch.compile(reduced, backend="aot_eager", fullgraph=True)(given)
        everything = everyone(world_size, (2, 3))
        check("torch", seen[0], np.max(everything, axis=0))
        check("torch", seen[1], np.sum(everything, axis=0)[rank])
        torch._dynamo.reset()


@pytest.mark.ranks(1, 3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (0, 4)])
def test_a_list_is_reduced_and_scattered(rank: int, world_size: int, kind: str, shape: tuple[int, ...]) -> None:
    with world():
        parts = [make(kind, numbers(rank + 3 * place, shape)) for place in range(world_size)]
        for op, combine in (("sum", np.sum), ("MAX", np.max)):
            output = make(kind, np.full(shape, 77.0))
            assert functional.reduce_scatter_inplace(output, parts, op) is output
            check(kind, output, combine([numbers(other + 3 * rank, shape) for other in range(world_size)], axis=0))


@pytest.mark.ranks(2)
def test_gradients_go_through_a_list_that_is_reduced_and_scattered(rank: int, world_size: int) -> None:
    with world():
        parts = [torch.ones(2, requires_grad=True) for _ in range(2)]
        output = functional.reduce_scatter_inplace(torch.zeros(2), parts)
        (output * (rank + 1)).sum().backward()
        assert [part.grad.tolist() for part in parts] == [[1.0, 1.0], [2.0, 2.0]]  # that of the rank each part goes to


WRONG: dict[str, tuple[type[Exception], str, Callable[[], Any]]] = {
    "another shape": (
        AssertionError,
        "output must have shape",
        lambda: functional.reduce_scatter_inplace(np.zeros(2), [np.ones(2), np.ones(3)]),
    ),
    "too few": (
        ValueError,
        "input_list must have",
        lambda: functional.reduce_scatter_inplace(np.zeros(2), [np.ones(2)]),
    ),
    "no list": (
        TypeError,
        "input_list must be a list",
        lambda: functional.reduce_scatter_inplace(np.zeros(2), np.ones(4)),
    ),
    "in the background": (
        AssertionError,
        "async_op",
        lambda: functional.reduce_scatter_inplace(np.zeros(2), [np.ones(2)] * 2, async_op=True),
    ),
    "another op": (
        RuntimeError,
        "op must be one of",
        lambda: functional.reduce_scatter_inplace(np.zeros(2), [np.ones(2)] * 2, "prod"),
    ),
    "no factor": (
        ValueError,
        "PREMUL_SUM needs a factor",
        lambda: functional.all_reduce(np.ones(2), dist.ReduceOp.PREMUL_SUM, dist.group.WORLD),
    ),
}


@pytest.mark.ranks(2)
def test_wrong_arguments(rank: int, world_size: int) -> None:
    with world():
        for name, (kind, words, wrong) in WRONG.items():
            with named(name):
                assert_refused(kind, words, wrong)
                dist.barrier()
                assert_refused_on_one(rank, kind, wrong, lambda: dist.all_reduce(np.ones(2)))
                assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_neither_rank_of_a_message_is_named(rank: int, world_size: int) -> None:
    with world():
        assert_refused(ValueError, "dst or group_dst must be given", functional.isend_inplace, torch.ones(2))
        assert_refused(ValueError, "src or group_src must be given", functional.irecv_inplace, torch.ones(2))
        assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_waiting_for_several_tensors(rank: int, world_size: int) -> None:
    with world():
        mine = torch.from_numpy(numbers(rank, 3))
        pending = functional.all_reduce_coalesced([mine, mine * 2], "sum", dist.group.WORLD)
        seen = functional.wait_tensors(pending)
        assert [type(one) for one in seen] == [torch.Tensor, torch.Tensor]
        total = np.sum(everyone(world_size, 3), axis=0)
        check("torch", seen[0], total)
        check("torch", seen[1], 2 * total)
        plain = [torch.ones(1), np.ones(2)]
        found = functional.wait_tensors(plain)
        assert all(one is other for one, other in zip(found, plain, strict=True))


def test_waiting_for_nothing() -> None:
    assert_refused(RuntimeError, "at least one tensor", functional.wait_tensors, [])
    assert_refused(TypeError, "tensors must be a list of tensors", functional.wait_tensors, torch.ones(2))
    assert_refused(TypeError, "tensors must be a list of tensors", functional.wait_tensors, ["x"])


def test_gradients_pass_through_waiting_unchanged() -> None:
    gradients = [torch.ones(2), torch.zeros(1)]
    (passed,) = functional.wait_tensors_backward(None, gradients)
    assert passed is gradients


def test_only_premultiplied_sums_have_a_factor() -> None:
    assert dist.ReduceOp.PREMUL_SUM(torch.tensor(0.5)).factor == 0.5
    assert_refused(RuntimeError, "only PREMUL_SUM takes a factor", dist.ReduceOp.SUM, 2.0)
    assert_refused(TypeError, "factor", dist.ReduceOp.PREMUL_SUM, "2")


class TorchOp:
    """Stands for torch 2.15's ReduceOp, whose script objects hold what they were made of."""

    SUM, MAX = "SUM", "MAX"

    def __init__(self, name: str, factor: float | None = None) -> None:
        self.name, self.factor = name, factor

    @classmethod
    def PREMUL_SUM(cls, factor: float) -> TorchOp:  # torch's name
        return cls("PREMUL_SUM", factor)

    def boxed(self) -> tuple[str, TorchOp]:
        return "box", self

    @staticmethod
    def unbox(boxed: tuple[str, TorchOp]) -> TorchOp:
        return boxed[1]


def test_torchs_own_script_objects_hold_the_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch.distributed as theirs

    assert hasattr(theirs.ReduceOp, "boxed") or assert_refused(
        UnsupportedError, "torch 2.15 or later", dist.ReduceOp(dist.ReduceOp.SUM).boxed
    )
    assert hasattr(theirs.ReduceOp, "unbox") or assert_refused(
        UnsupportedError, "torch 2.15 or later", dist.ReduceOp.unbox, 3
    )
    monkeypatch.setattr(theirs, "ReduceOp", TorchOp)
    for op in (dist.ReduceOp(dist.ReduceOp.MAX), dist.ReduceOp.PREMUL_SUM(3.0)):
        kind, held = op.boxed()
        assert (kind, held.name, held.factor) == ("box", op.op.name, 3.0 if op == dist.ReduceOp.PREMUL_SUM else None)
        found = dist.ReduceOp.unbox((kind, held))
        assert (found, found.factor) == (op, op.factor)
    assert_refused(RuntimeError, "must be from ReduceOp.boxed, got 3", dist.ReduceOp.unbox, 3)
