"""The gradients of torch's functional collectives are those of the sum of all ranks' losses, whatever the reduce op."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from gradients import assert_gradients, differentiated
from torch_world import world

import shim.frontends.torch.distributed as dist
import shim.frontends.torch.distributed._functional_collectives as functional
import shim.frontends.torch.distributed.nn.functional as nn

pytestmark = pytest.mark.filterwarnings("ignore:torch deprecates:FutureWarning")

OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "PREMUL_SUM")


def reals(rank: int, *shape: int, salt: float = 0.0) -> np.ndarray:
    """Numbers far enough from each other that moving one does not change which is the largest."""
    count = int(np.prod(shape))
    return (np.sin(np.arange(count) * 2.3 + 1.9 * rank + salt) + 0.1 * rank + 0.4).reshape(shape)


def op_of(name: str, rank: int) -> Any:
    if name == "PREMUL_SUM":
        return dist.distributed_c10d._make_nccl_premul_sum(1.5 + rank)
    return getattr(dist.ReduceOp, name)


@contextmanager
def subgroup(rank: int) -> Iterator[Any]:
    """A world of three, and its ranks 2 and 0 as a group in which they are 0 and 1; the third rank gets None."""
    with world():
        group = dist.new_group([2, 0], sort_ranks=False)
        yield None if rank == 1 else group


@pytest.mark.ranks(3)
@pytest.mark.parametrize("op", OPS)
def test_all_reduce(rank: int, world_size: int, op: str) -> None:
    with world():
        assert_gradients(rank, lambda x: [nn.all_reduce(x[0], op_of(op, rank))], [reals(rank, 2, 2)])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("op", OPS)
def test_reduce(rank: int, world_size: int, op: str) -> None:
    with world():
        for dst in range(world_size):
            assert_gradients(rank, lambda x, dst=dst: [nn.reduce(x[0], dst, op_of(op, rank))], [reals(rank, 2)])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("op", OPS)
def test_reduce_scatter_of_unequal_parts(rank: int, world_size: int, op: str) -> None:
    with world():

        def function(x: Any) -> Any:
            output = torch.empty(rank + 1, 2, dtype=torch.float64)
            return [nn.reduce_scatter(output, list(x), op_of(op, rank))]

        parts = [reals(rank, other + 1, 2, salt=other) for other in range(world_size)]
        assert_gradients(rank, function, parts)


@pytest.mark.ranks(3)
def test_all_gather_gather_and_scatter_of_unequal_parts(rank: int, world_size: int) -> None:
    with world():
        assert_gradients(rank, lambda x: nn.all_gather(x[0]), [reals(rank, rank + 1, 2)])
        for root in range(world_size):
            assert_gradients(rank, lambda x, root=root: nn.gather(x[0], root), [reals(rank, rank + 1)])
            parts = [reals(rank, other + 1, salt=other) for other in range(world_size)]
            assert_gradients(rank, lambda x, root=root: [nn.scatter(list(x), root)], parts)


@pytest.mark.ranks(3)
def test_roots_are_ranks_of_the_world_in_a_subgroup(rank: int, world_size: int) -> None:
    with subgroup(rank) as group:
        if group is None:
            return
        for root in (0, 2):
            check = partial(assert_gradients, rank, group=group)
            check(lambda x, root=root: [nn.broadcast(x[0], root, group)], [reals(rank, 2)])
            check(lambda x, root=root: [nn.reduce(x[0], root, group=group)], [reals(rank, 2)])
            check(lambda x, root=root: nn.gather(x[0], root, group), [reals(rank, 2)])
            check(lambda x, root=root: [nn.scatter(list(x), root, group)], [reals(rank, 2), reals(rank, 2, salt=1)])
        check(lambda x: [functional.broadcast(x[0], 1, group)], [reals(rank, 2)])


@pytest.mark.ranks(3)
def test_the_others_in_a_subgroup(rank: int, world_size: int) -> None:
    with subgroup(rank) as group:
        if group is None:
            return
        check = partial(assert_gradients, rank, group=group)
        check(lambda x: [nn.all_reduce(x[0], dist.ReduceOp.MAX, group)], [reals(rank, 3)])
        check(lambda x: nn.all_gather(x[0], group), [reals(rank, 3)])
        check(lambda x: [functional.all_gather_single(x[0], 1, group)], [reals(rank, 2, 2)])
        check(lambda x: [functional.reduce_scatter_single(x[0], "product", 1, group)], [reals(rank, 1, 4)])
        check(lambda x: [functional.permute_tensor(x[0], [1, 0], group)], [reals(rank, 2, 2)])


@pytest.mark.ranks(3)
def test_all_gather_base_stacked_and_concatenated(rank: int, world_size: int) -> None:
    with world():
        for shape in ((world_size * 2, 2), (world_size, 2, 2)):

            def function(x: Any, shape: Any = shape) -> Any:
                return [nn._all_gather_base(torch.empty(shape, dtype=torch.float64), x[0])]

            assert_gradients(rank, function, [reals(rank, 2, 2)])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("op", ["sum", "avg", "product", "min", "max"])
def test_functional_reductions(rank: int, world_size: int, op: str) -> None:
    with world():
        everyone = dist.group.WORLD
        assert_gradients(rank, lambda x: [functional.all_reduce(x[0], op, everyone)], [reals(rank, 3)])
        for dimension in (0, 1, -1):
            whole = [reals(rank, world_size, world_size)]
            assert_gradients(
                rank,
                lambda x, dimension=dimension: [functional.reduce_scatter_single(x[0], op, dimension, everyone)],
                whole,
            )


@pytest.mark.ranks(3)
def test_functional_gathering_and_lists(rank: int, world_size: int) -> None:
    with world():
        everyone = dist.group.WORLD
        for dimension in (0, 1, -1):
            assert_gradients(
                rank,
                lambda x, dimension=dimension: [functional.all_gather_single(x[0], dimension, everyone)],
                [reals(rank, 2, 2)],
            )
        pair = [reals(rank, 2), reals(rank, world_size, salt=1)]
        assert_gradients(rank, lambda x: functional.all_reduce_coalesced(list(x), "max", everyone), pair)
        assert_gradients(rank, lambda x: functional.all_gather_single_coalesced(list(x), everyone), pair)
        squares = [reals(rank, world_size, 1), reals(rank, 1, world_size, salt=1)]
        assert_gradients(
            rank, lambda x: functional.reduce_scatter_single_coalesced(list(x), "product", [0, 1], everyone), squares
        )
        turned = [(other + 1) % world_size for other in range(world_size)]
        assert_gradients(rank, lambda x: [functional.permute_tensor(x[0], turned, everyone)], [reals(rank, 2)])


@pytest.mark.ranks(2)
def test_gradients_go_through_what_is_written_in_place(rank: int, world_size: int) -> None:
    def empty(*shape: int) -> Any:
        return torch.zeros(*shape, dtype=torch.float64)

    with world():
        square = [reals(rank, 2, 2)]
        assert_gradients(rank, lambda x: [functional.all_reduce_inplace(x[0] * 2)], square)
        assert_gradients(
            rank, lambda x: [functional.all_gather_tensor_inplace(empty(2, 4), x[0], gather_dim=1)], square
        )
        assert_gradients(
            rank, lambda x: [functional.reduce_scatter_tensor_inplace(empty(2, 1), x[0], "max", scatter_dim=1)], square
        )
        assert_gradients(rank, lambda x: [functional.all_to_all_inplace(empty(2, 2), x[0])], square)
        assert_gradients(rank, lambda x: functional.all_gather_inplace([empty(2, 2), empty(2, 2)], x[0]), square)


@pytest.mark.ranks(2)
def test_waiting_keeps_the_gradient(rank: int, world_size: int) -> None:
    with world():
        everyone = dist.group.WORLD
        for wait in (functional.wait_tensor, lambda t: t.wait(), lambda t: t.trigger_wait(), lambda t: t.view(2, 1)):
            assert_gradients(
                rank, lambda x, wait=wait: [wait(functional.all_reduce(x[0], "sum", everyone))], [reals(rank, 2)]
            )


@pytest.mark.ranks(3)
def test_a_product_with_zeros(rank: int, world_size: int) -> None:
    """The quotient of result and input would be nan."""
    with world():
        values = [[0.0, 0.0, 2.0, 0.0], [3.0, 0.0, 5.0, 0.0], [7.0, 2.0, 3.0, 0.0]]
        x = torch.tensor(values[rank], requires_grad=True)
        nn.all_reduce(x, dist.ReduceOp.PRODUCT).sum().backward()
        others = [np.prod([values[other][i] for other in range(3) if other != rank]) for i in range(4)]
        assert x.grad.tolist() == [3 * other for other in others]


@pytest.mark.ranks(3)
@pytest.mark.parametrize("op", ["MIN", "MAX"])
def test_ranks_that_tie_share_the_gradient(rank: int, world_size: int, op: str) -> None:
    with world():
        sign = 1.0 if op == "MAX" else -1.0
        values = [[2.0, 1.0, 5.0], [2.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
        x = torch.tensor([sign * value for value in values[rank]], requires_grad=True)
        nn.all_reduce(x, getattr(dist.ReduceOp, op)).sum().backward()
        expected = [[1.5, 1.0, 3.0], [1.5, 1.0, 0.0], [0.0, 1.0, 0.0]]
        assert x.grad.tolist() == expected[rank]


@pytest.mark.ranks(3)
@pytest.mark.parametrize("op", ["SUM", "AVG", "PRODUCT", "MAX"])
def test_second_derivatives_of_reductions(rank: int, world_size: int, op: str) -> None:
    with world():

        def scatter(x: Any) -> Any:
            return [nn.reduce_scatter(torch.empty(2, dtype=torch.float64), list(x), op_of(op, rank))]

        once = differentiated(rank, lambda x: [nn.all_reduce(x[0], op_of(op, rank))])
        assert_gradients(rank, once, [reals(rank, 2)])
        once = differentiated(rank, lambda x: [nn.reduce(x[0], 1, op_of(op, rank))])
        assert_gradients(rank, once, [reals(rank, 2)])
        parts = [reals(rank, 2, salt=other) for other in range(world_size)]
        assert_gradients(rank, differentiated(rank, scatter), parts)


@pytest.mark.ranks(2)
def test_second_derivatives_of_the_others(rank: int, world_size: int) -> None:
    with world():
        everyone = dist.group.WORLD
        for function in (
            lambda x: [nn.broadcast(x[0], 1)],
            lambda x: nn.all_gather(x[0]),
            lambda x: nn.gather(x[0], 1),
            lambda x: nn.all_to_all([torch.empty(1, dtype=torch.float64) for _ in range(2)], [x[0][:1], x[0][1:]]),
            lambda x: [nn.all_to_all_single(torch.empty(2, dtype=torch.float64), x[0])],
            lambda x: [nn._all_gather_base(torch.empty(4, dtype=torch.float64), x[0])],
            lambda x: [functional.all_reduce(x[0], "sum", everyone)],
            lambda x: [functional.reduce_scatter_single(x[0], "avg", 0, everyone)],
        ):
            assert_gradients(rank, differentiated(rank, function), [reals(rank, 2)])
        scatter = differentiated(rank, lambda x: [nn.scatter(list(x), 1)])
        assert_gradients(rank, scatter, [reals(rank, 2), reals(rank, 2, salt=1)])


@pytest.mark.ranks(2)
@pytest.mark.parametrize("op", ["sum", "avg", "product"])
def test_complex_numbers(rank: int, world_size: int, op: str) -> None:
    with world():
        x = [reals(rank, 2) + 1j * reals(rank, 2, salt=5)]
        assert_gradients(rank, lambda x: [functional.all_reduce(x[0], op, dist.group.WORLD)], x)
        assert_gradients(rank, lambda x: [functional.all_reduce(x[0].conj(), op, dist.group.WORLD)], x)
        assert_gradients(rank, lambda x: nn.all_gather(x[0].conj()), x)


@pytest.mark.ranks(2)
def test_float32_and_views(rank: int, world_size: int) -> None:
    with world():
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        nn.all_reduce(x.t()).sum().backward()  # the gradient of a sum is an expanded tensor
        assert torch.equal(x.grad, torch.full((2, 3), 2.0))
        x = torch.ones(1, dtype=torch.bfloat16, requires_grad=True)
        (nn.all_gather(x.expand(3))[1] * (rank + 1)).sum().backward()
        assert x.grad.tolist() == [9.0 * rank]


@pytest.mark.ranks(2)
def test_scatter_to_ranks_that_pass_none(rank: int, world_size: int) -> None:
    with world():
        parts = [torch.full((2, other + 1), 1.0 + other).requires_grad_() for other in range(2)] if rank == 1 else None
        mine = nn.scatter(parts, 1)
        assert mine.tolist() == [[1.0 + rank] * (rank + 1)] * 2
        (mine * (rank + 5)).sum().backward()
        if parts is not None:
            assert [part.grad.tolist() for part in parts] == [[[5.0]] * 2, [[6.0] * 2] * 2]


@pytest.mark.ranks(2)
def test_a_gradient_that_one_rank_alone_wants(rank: int, world_size: int) -> None:
    """The others take part in the backward all the same."""
    with world():
        x = torch.ones(2, requires_grad=rank == 0)
        (nn.all_gather(x)[0] * (rank + 1)).sum().backward()
        total = nn.gather(x, 1)[0]
        total.sum().backward()
        assert x.grad is None if rank else x.grad.tolist() == [4.0, 4.0]
        parts = [torch.ones(2, requires_grad=rank == 0) for _ in range(2)]
        assert not nn.scatter(parts, 1).requires_grad
