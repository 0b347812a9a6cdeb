"""What the tests of MindSpore's frontend share: a world, numbers that differ by rank and place, and tensors of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore.graph.api import _pynative_executor

import shim.frontends.mindspore.mint.distributed as dist

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
SOME_DTYPES = ("bfloat16", "complex64")  # which stand for all: the tables run every dtype
KINDS = ("mindspore", "numpy", "torch")
REDUCTIONS: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max, "avg": np.mean}
COMPILED = "compiled"
MODES = ("PyNative", COMPILED)
# MindSpore compiles a graph for seconds: those of the other dtypes are compiled at night.
COMPILED_DTYPES = [pytest.param(one, marks=[] if one in SOME_DTYPES else pytest.mark.nightly) for one in DTYPES]
MODES_AND_DTYPES = [
    *(("PyNative", dtype) for dtype in SOME_DTYPES),
    *(pytest.param(COMPILED, *one.values, marks=one.marks) for one in COMPILED_DTYPES),
]


class Network(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    """Calls a primitive, in a graph where Cells are compiled."""

    def __init__(self, primitive: Any) -> None:
        super().__init__()
        self.primitive = primitive

    def construct(self, *arguments: Any) -> Any:
        return self.primitive(*arguments)


@contextlib.contextmanager
def world(**arguments: Any) -> Iterator[None]:
    """Be in the world, and out of it again, whatever happens.

    MindSpore goes on recording a gradient after an exception in what it differentiates, and is made to forget it.
    """
    dist.init_process_group(**arguments)
    try:
        yield
    finally:
        _pynative_executor.clear_res()
        if dist.is_initialized():
            dist.destroy_process_group()


@contextlib.contextmanager
def in_mode(mode: str, folder: Path) -> Iterator[None]:
    """Run Cells as *mode* says, in *folder*: the compiler leaves a report of what it refuses where it is."""
    before = Path.cwd()
    os.chdir(folder)
    mindspore.set_context(mode=mindspore.GRAPH_MODE if mode == COMPILED else mindspore.PYNATIVE_MODE)
    try:
        yield
    finally:
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        os.chdir(before)


def numbers(rank: int, shape: Any, dtype: str = "float32") -> np.ndarray[Any, Any]:
    """Return small numbers that differ by rank and place; bfloat16 is left to ``make``."""
    count = np.arange(int(np.prod(shape))).reshape(shape) + 1
    if dtype == "bool":
        return (count + rank) % (rank + 2) == 0
    values = count + 10 * rank
    if dtype.startswith("complex"):
        return (values + 1j * (count * (rank + 1))).astype(dtype)
    return values.astype("float32" if dtype == "bfloat16" else dtype)


def of_all(world_size: int, shape: Any, dtype: str = "float32") -> list[np.ndarray[Any, Any]]:
    return [numbers(other, shape, dtype) for other in range(world_size)]


def make(kind: str, array: np.ndarray[Any, Any], dtype: str | None = None) -> Any:
    """Return a tensor of *kind* with the elements of *array*, which it does not share."""
    if kind == "numpy":
        return array.copy()
    if kind == "torch":
        import torch

        return torch.from_numpy(array.copy())
    tensor = mindspore.Tensor(array)
    return tensor.astype(mindspore.bfloat16) if dtype == "bfloat16" else tensor


def array_of(tensor: Any) -> np.ndarray[Any, Any]:
    """Return the elements of *tensor*; of a bfloat16 one as float32."""
    if isinstance(tensor, mindspore.Tensor):
        return (tensor.astype(mindspore.float32) if tensor.dtype == mindspore.bfloat16 else tensor).asnumpy()
    return np.asarray(tensor)


def check(kind: str, tensor: Any, expected: np.ndarray[Any, Any], dtype: str | None = None) -> None:
    """Assert that *tensor* is of *kind* and has the dtype, shape and elements of *expected*."""
    assert type(tensor).__module__.partition(".")[0] == kind, type(tensor)
    if dtype == "bfloat16":
        assert tensor.dtype == mindspore.bfloat16
    found = array_of(tensor)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def assert_usable(rank: int, world_size: int) -> None:
    """What was refused has left the world as it was."""
    tensor = numbers(rank, 3)
    dist.all_reduce(tensor)
    check("numpy", tensor, sum(of_all(world_size, 3)))
