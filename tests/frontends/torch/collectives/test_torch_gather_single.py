"""Gathering into one tensor on one rank, by functions and by methods of ProcessGroup."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from rank_numbers import check, make, numbers
from torch_world import KINDS, assert_usable, world
from wrong_calls import assert_refused, assert_refused_on_one, named

import shim.frontends.torch.distributed as dist
from shim.conformance import oracle

pytestmark = pytest.mark.newest

FUNCTIONS = ("gather_single", "gather_into_tensor")
SHAPES = [
    ((3, 2), "joined"),
    ((3, 2), "stacked"),
    ((3, 2), "flat"),
    ((), "flat"),
    ((1,), "stacked"),
    ((0, 4), "joined"),
]


def room(shape: tuple[int, ...], form: str, size: int) -> np.ndarray:
    forms = {
        "joined": lambda: (size * shape[0], *shape[1:]),
        "stacked": lambda: (size, *shape),
        "flat": lambda: (size * int(np.prod(shape)),),
    }
    return np.full(forms[form](), 77.0)


@pytest.mark.ranks(1, 2, 3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_fills_the_roots_tensor_alone(rank: int, world_size: int, kind: str, name: str) -> None:
    root = world_size - 1
    with world():
        for shape, form in SHAPES:
            everything = [numbers(other, shape) for other in range(world_size)]
            output, mine = make(kind, room(shape, form, world_size)), make(kind, numbers(rank, shape))
            assert getattr(dist, name)(mine, output, root) is None
            expected = room(shape, form, world_size)
            if rank == root:
                expected = np.concatenate([one.reshape(-1) for one in everything]).reshape(expected.shape)
            check(kind, output, expected)
            check(kind, mine, everything[rank])


@pytest.mark.ranks(3)
def test_the_root_is_a_rank_of_the_world_or_of_the_group(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group([2, 1], sort_ranks=False)
        if rank == 0:
            with pytest.warns(UserWarning, match="does not belong"):
                assert dist.gather_single(np.ones(2), group=group) is None
            return
        for root in ({"dst": 1}, {"group_dst": 1}):
            output = np.zeros(4)
            work = dist.gather_single(
                numbers(rank, 2), output if rank == 1 else None, **root, group=group, async_op=True
            )
            assert isinstance(work, dist.Work)
            assert work.wait()
            assert rank != 1 or work.result()[0] is output
            expected = oracle.joined([numbers(2, 2), numbers(1, 2)])
            check("numpy", output, expected if rank == 1 else np.zeros(4))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_methods_take_a_root_in_their_options(rank: int, world_size: int, name: str) -> None:
    with world():
        options = dist.GatherOptions()
        options.rootRank = 1
        for options.asyncOp in (True, False):
            output = np.zeros((2, 3))
            work = getattr(dist.group.WORLD, name)(output, numbers(rank, 3), options)
            assert options.asyncOp or work.is_completed()
            assert work.wait()
            check("numpy", output, np.stack([numbers(0, 3), numbers(1, 3)]) if rank == 1 else np.zeros((2, 3)))


@pytest.mark.ranks(2)
def test_between_the_elements_of_a_view_nothing_is_written(rank: int, world_size: int) -> None:
    with world():
        base = np.zeros((2, 6))
        dist.gather_single(numbers(rank, 3), base[:, ::2])
        check("numpy", base[:, ::2], np.stack([numbers(0, 3), numbers(1, 3)]) if rank == 0 else np.zeros((2, 3)))
        check("numpy", base[:, 1::2], np.zeros((2, 3)))


WRONG: dict[str, tuple[type[Exception], str, Callable[[int], Any]]] = {
    "none on the root": (ValueError, "gather_tensor must be given", lambda rank: dist.gather_single(np.ones(2), dst=1)),
    "a list": (
        TypeError,
        "gather_tensor must be one tensor",
        lambda rank: dist.gather_single(np.ones(2), [np.ones(2), np.ones(2)], rank),
    ),
    "another number of elements": (
        ValueError,
        "gather_tensor",
        lambda rank: dist.gather_single(np.ones(2), np.ones(5), rank),
    ),
    "another dtype": (
        ValueError,
        "gather_tensor",
        lambda rank: dist.gather_single(np.ones(2), np.ones(4, "float32"), rank),
    ),
    "two roots": (ValueError, "dst", lambda rank: dist.gather_single(np.ones(2), np.ones(4), 0, group_dst=0)),
    "a root outside": (ValueError, "not in group", lambda rank: dist.gather_into_tensor(np.ones(2), np.ones(4), 5)),
}


@pytest.mark.ranks(2)
def test_wrong_arguments_are_refused_on_all_ranks(rank: int, world_size: int) -> None:
    with world():
        for name, (kind, words, wrong) in WRONG.items():
            with named(name):
                if rank == 1:
                    assert_refused(kind, words, wrong, rank)
                else:
                    assert_refused(RuntimeError, None, dist.gather_single, np.ones(2), np.ones(4))
                assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_other_numbers_of_elements_on_another_rank_are_told_to_all(rank: int, world_size: int) -> None:
    with world():
        told = assert_refused(
            RuntimeError, "disagree", lambda: dist.gather_single(np.ones(2 + rank), np.ones(4 + 2 * rank))
        )
        assert "[3]" in told
        assert_usable(rank, world_size)
        assert_refused_on_one(
            rank, TypeError, lambda: dist.gather_single(3), lambda: dist.gather_single(np.ones(1), np.ones(2))
        )
        assert_usable(rank, world_size)


@pytest.mark.ranks(1)
def test_neither_name_warns(rank: int, world_size: int) -> None:
    """torch says that ``gather_into_tensor`` is an alias in its documentation alone."""
    with world():
        for name in FUNCTIONS:
            output = torch.zeros(2)
            getattr(dist, name)(torch.ones(2), output)  # a warning would be an error
            assert output.tolist() == [1.0, 1.0]
