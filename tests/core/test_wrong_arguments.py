"""What a rank can see to be wrong in its own call is refused before anything is sent, and the group goes on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from core_world import world
from wrong_calls import named

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.work import Work
from shim.errors import ArgumentError, RankError, ShimError, TensorError

ME = Caller("test")
SUM = ReduceOp.SUM


def some(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.ones(shape, dtype)


def read_only(length: int) -> np.ndarray:
    tensor = some(length)
    tensor.flags.writeable = False
    return tensor


def exchange(group: ProcessGroup, own_output: int, own_input: int, next_output: int, next_input: int) -> Work:
    """Exchange four rows of two elements, split between this rank and the next one."""
    output_splits, input_splits = [0] * group.size, [0] * group.size
    following = (group.rank + 1) % group.size
    output_splits[group.rank], input_splits[group.rank] = own_output, own_input
    output_splits[following], input_splits[following] = next_output, next_input
    return calls.all_to_all(ME, group, some(4, 2), some(4, 2), output_splits, input_splits)


ROOTED: dict[str, Callable[[ProcessGroup, int], Work]] = {
    "broadcast": lambda group, root: calls.broadcast(ME, group, some(2), root),
    "reduce": lambda group, root: calls.reduce(ME, group, some(2), some(2), SUM, root),
    "gather": lambda group, root: calls.gather(ME, group, some(group.size), some(1), root),
    "scatter": lambda group, root: calls.scatter(ME, group, some(1), some(group.size), root),
}

WRONG: dict[str, tuple[type[ShimError], str, Callable[[ProcessGroup], Work]]] = {
    "op of another dtype": (
        ArgumentError,
        "op BAND is not defined for elements of type float64",
        lambda group: calls.all_reduce(ME, group, some(2), some(2), ReduceOp.BAND),
    ),
    "read-only output": (
        TensorError,
        "output must be writable",
        lambda group: calls.all_reduce(ME, group, read_only(2), some(2), SUM),
    ),
    "expanded output": (
        TensorError,
        "output must not hold the same memory twice",
        lambda group: calls.all_reduce(ME, group, np.lib.stride_tricks.as_strided(some(1), (2,), (0,)), some(2), SUM),
    ),
    "two dtypes": (
        ArgumentError,
        "output and input must have the same dtype, got float32 and float64",
        lambda group: calls.all_reduce(ME, group, some(2, dtype="float32"), some(2), SUM),
    ),
    "two sizes": (
        ArgumentError,
        "output and input must hold the same number of elements",
        lambda group: calls.all_reduce(ME, group, some(2), some(3), SUM),
    ),
    "too few rows in splits": (
        ArgumentError,
        "output_splits must add up to the 4 rows",
        lambda group: exchange(group, 1, 2, 2, 2),
    ),
    "too many rows in splits": (
        ArgumentError,
        "input_splits must add up to the 4 rows",
        lambda group: exchange(group, 2, 2, 2, 3),
    ),
    "negative split": (
        ArgumentError,
        "input_splits must not be negative, got -1",
        lambda group: exchange(group, 2, 5, 2, -1),
    ),
    "own parts of two sizes": (
        ArgumentError,
        "own parts of output and input must be equally large",
        lambda group: exchange(group, 1, 3, 3, 1),
    ),
    "rows that cannot be divided": (
        ArgumentError,
        "dimension 0 of input must be divisible by the",
        lambda group: calls.reduce_scatter(ME, group, some(1), some(group.size + 1), SUM),
    ),
    "part of another size": (
        ArgumentError,
        "part of input must be as large as output",
        lambda group: calls.reduce_scatter(ME, group, some(2), some(3 * group.size), SUM),
    ),
    "part of a smaller size": (
        ArgumentError,
        "part of input must be as large as output",
        lambda group: calls.reduce_scatter(ME, group, some(2), some(group.size), SUM),
    ),
    "a tensor too few": (
        ArgumentError,
        "output must hold . tensors, one for each rank",
        lambda group: calls.all_gather(ME, group, [some(1) for _ in range(group.size - 1)], some(1)),
    ),
    "a tensor too many": (
        ArgumentError,
        "output must hold . tensors, one for each rank",
        lambda group: calls.all_gather(ME, group, [some(1) for _ in range(group.size + 1)], some(1)),
    ),
}


def assert_refused(group: ProcessGroup, kind: type[ShimError], text: str, call: Callable[[], Work]) -> None:
    with pytest.raises(kind, match=rf"^test: .*{text}") as raised:
        call().wait()
    assert raised.type is kind
    tensor = some(1) * (group.rank + 1)
    calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
    assert tensor == group.size * (group.size + 1) / 2


@pytest.mark.ranks(3)
def test_wrong_arguments_are_refused(rank: int, world_size: int) -> None:
    with world() as group:
        for name, (kind, text, call) in WRONG.items():
            with named(name):
                assert_refused(group, kind, text, partial(call, group))


@pytest.mark.ranks(3)
def test_a_root_is_a_rank_of_the_group(rank: int, world_size: int) -> None:
    with world() as group:
        for name, call in ROOTED.items():
            for root in (-1, world_size):
                text = rf"root must be a rank of the group, 0\.\.{world_size - 1}, got {root}"
                with named(name):
                    assert_refused(group, RankError, text, partial(call, group, root))
