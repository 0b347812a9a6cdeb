"""What the tests of the Paddle frontends share: both versions, a world for one test, and its tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rank_numbers import check, numbers, total

from shim.frontends.paddle_2 import distributed as paddle_2
from shim.frontends.paddle_3 import distributed as paddle_3

KINDS = ("numpy", "paddle")
REDUCTIONS = {"SUM": np.sum, "PROD": np.prod, "MIN": np.min, "MAX": np.max, "AVG": np.mean}
VERSIONS = {"2": paddle_2, "3": paddle_3}
PADDLE_DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)


@contextmanager
def world(version: str = "3") -> Iterator[Any]:
    """Initialise the world through one version and give its module."""
    dist = VERSIONS[version]
    dist.init_parallel_env()
    try:
        yield dist
    finally:
        dist.destroy_process_group()


def paddle_numbers(rank: int, shape: Any, dtype: str) -> Any:
    """The same numbers as a paddle tensor of any of its dtypes, those that numpy does not have included."""
    import paddle

    in_numpy = "float32" if dtype.startswith(("bfloat", "float8")) else dtype
    return paddle.to_tensor(numbers(rank, shape, in_numpy)).astype(dtype)


def assert_usable(dist: Any, rank: int, world_size: int) -> None:
    """What was refused has left the world as it was."""
    tensor = numbers(rank, 3)
    dist.all_reduce(tensor)
    check("numpy", tensor, total(world_size, 3))
