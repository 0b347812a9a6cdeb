"""What the tests of the torch frontend share: a world for one test, its tensors, and what is asserted of both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from rank_numbers import check, numbers, total

import shim.frontends.torch.distributed as dist
import shim.frontends.torch.distributed._functional_collectives as functional

KINDS = ("numpy", "torch")
REDUCTIONS = {"SUM": np.sum, "PRODUCT": np.prod, "MIN": np.min, "MAX": np.max, "AVG": np.mean}

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


def torch_numbers(rank: int, shape: Any, dtype: str) -> Any:
    """The same numbers as a torch tensor of any of its dtypes, those that numpy does not have included."""
    in_numpy = "float32" if dtype.startswith(("bfloat", "float8")) else dtype
    return torch.from_numpy(numbers(rank, shape, in_numpy)).to(getattr(torch, dtype))


def assert_usable(rank: int, world_size: int) -> None:
    """What was refused has left the world as it was."""
    tensor = numbers(rank, 3)
    dist.all_reduce(tensor)
    check("numpy", tensor, total(world_size, 3))


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
