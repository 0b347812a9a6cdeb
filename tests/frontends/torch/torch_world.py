"""What the tests of the torch frontend share: sizes and a world for one test, and numbers that differ by rank and position."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import shim.frontends.torch.distributed as dist
import shim.frontends.torch.distributed._functional_collectives as functional
from shim.conformance.assertions import assert_same_array
from shim.conformance.kinds import kind_named

EVERY_SIZE = pytest.mark.ranks(1, 2, 3, 4, 7)
SIZES = pytest.mark.ranks(2, 3, 4)  # of tests that need another rank, or many calls

TORCH_DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
FLOAT8_DTYPES = ("float8_e4m3fn", "float8_e5m2")


@contextmanager
def world() -> Iterator[None]:
    dist.init_process_group("gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def numbers(rank: int, shape: Any, dtype: str = "float64") -> np.ndarray:
    """Small numbers, so that sums over a few ranks are exact in every dtype and overflow in none."""
    count = int(np.prod(shape))
    values = (np.arange(count) * 3 + 5 * rank + 1) % 23
    if dtype.startswith("complex"):
        return (values + 1j * (values + rank)).reshape(shape).astype(dtype)
    return (values % 2 if dtype == "bool" else values).reshape(shape).astype(dtype)


def make(kind: str, array: np.ndarray) -> Any:
    return kind_named(kind).make(array)


def check(kind: str, tensor: Any, expected: np.ndarray) -> None:
    assert_same_array(kind_named(kind).read(tensor), expected)


def torch_numbers(rank: int, shape: Any, dtype: str) -> Any:
    """The same numbers as a torch tensor of any of its dtypes, those that numpy does not have included."""
    import torch

    in_numpy = "float32" if dtype.startswith(("bfloat", "float8")) else dtype
    return torch.from_numpy(numbers(rank, shape, in_numpy)).to(getattr(torch, dtype))


def assert_usable(rank: int, world_size: int) -> None:
    """What was refused has left the world as it was."""
    tensor = numbers(rank, 3)
    dist.all_reduce(tensor)
    check("numpy", tensor, sum(numbers(other, 3) for other in range(world_size)))


def total(world_size: int, count: int, add: int = 0) -> Any:
    return sum(numbers(other + add, count) for other in range(world_size))


def assert_in_step(rank: int, world_size: int) -> None:
    """Reduce as often as the longest list is long, so that whatever is left of it would be met."""
    for add in range(4):
        dist.all_reduce(tensor := numbers(rank + add, 2))
        check("numpy", tensor, total(world_size, 2, add))


def assert_result(kind: str, seen: Any, expected: np.ndarray) -> None:
    """*seen* is asynchronous for torch's tensors, and of the caller's own kind for others."""
    if kind == "torch":
        assert isinstance(seen, functional.AsyncCollectiveTensor)
        assert tuple(seen.shape) == expected.shape  # known before it is waited for
        seen = functional.wait_tensor(seen)
    check(kind, seen, expected)
