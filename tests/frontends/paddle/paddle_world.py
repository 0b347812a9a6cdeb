"""What the tests of the Paddle frontends share: both versions, a world for one test, and numbers that differ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from shim.conformance.assertions import assert_same_array
from shim.conformance.kinds import kind_named
from shim.frontends.paddle_2 import distributed as paddle_2
from shim.frontends.paddle_3 import distributed as paddle_3

VERSIONS = {"2": paddle_2, "3": paddle_3}
PADDLE_DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
FLOAT8_DTYPES = ("float8_e4m3fn", "float8_e5m2")


@contextmanager
def world(version: str = "3") -> Iterator[Any]:
    """Initialise the world through one version and give its module."""
    dist = VERSIONS[version]
    dist.init_parallel_env()
    try:
        yield dist
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


def paddle_numbers(rank: int, shape: Any, dtype: str) -> Any:
    """The same numbers as a paddle tensor of any of its dtypes, those that numpy does not have included."""
    import paddle

    in_numpy = "float32" if dtype.startswith(("bfloat", "float8")) else dtype
    return paddle.to_tensor(numbers(rank, shape, in_numpy)).astype(dtype)
