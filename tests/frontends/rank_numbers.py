"""Numbers that differ by rank and place, and tensors of any kind that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from shim.conformance.assertions import assert_same_array
from shim.conformance.kinds import kind_named


def numbers(rank: int, shape: Any, dtype: str = "float64") -> np.ndarray:
    """Small numbers, so that sums over a few ranks are exact in every dtype and overflow in none."""
    count = int(np.prod(shape))
    values = (np.arange(count) * 3 + 5 * rank + 1) % 23
    if dtype.startswith("complex"):
        return (values + 1j * (values + rank)).reshape(shape).astype(dtype)
    return (values % 2 if dtype == "bool" else values).reshape(shape).astype(dtype)


def everyone(world_size: int, shape: Any, dtype: str = "float64") -> list[np.ndarray]:
    return [numbers(rank, shape, dtype) for rank in range(world_size)]


def total(world_size: int, shape: Any, add: int = 0) -> Any:
    """The sum of all ranks' numbers, each those of the rank *add* further on."""
    return sum(numbers(other + add, shape) for other in range(world_size))


def make(kind: str, array: np.ndarray) -> Any:
    return kind_named(kind).make(array)


def check(kind: str, tensor: Any, expected: np.ndarray) -> None:
    assert_same_array(kind_named(kind).read(tensor), expected)
