"""Tensors of ``shim.empty``: of each framework, in memory that goes with the last of them."""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_world import world

import shim
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp
from shim.errors import ArgumentError, OutOfMemoryError, StateError, UnsupportedError

ME = Caller("test")


def files() -> int:
    return len(os.listdir("/proc/self/fd"))


def mappings() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:shim")


def address_of(framework: str, tensor: Any) -> int:
    address: int = tensor.ctypes.data if framework == "numpy" else tensor.data_ptr()
    return address


def load(framework: str) -> None:
    """Import a framework, MindSpore before Paddle: the other way round, they do not get along."""
    if framework == "paddle":
        importlib.import_module("mindspore")
    importlib.import_module(framework)


OTHERS = [pytest.param(name, marks=pytest.mark.frameworks) for name in ("torch", "paddle", "mindspore")]
of_every_framework = pytest.mark.parametrize("framework", ["numpy", *OTHERS])


@pytest.mark.ranks(1)
@of_every_framework
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
                                   "complex64", "complex128"])  # fmt: skip
@pytest.mark.parametrize("shape", [(3, 5), (0, 3), (), 4], ids=str)
def test_a_tensor_has_the_shape_and_dtype_asked_for(framework: str, shape: Any, dtype: str) -> None:
    load(framework)
    before = mappings()
    tensor = shim.empty(shape, dtype, framework)
    assert type(tensor).__module__.partition(".")[0] == framework
    assert tuple(tensor.shape) == (shape if isinstance(shape, tuple) else (shape,))
    assert str(tensor.dtype).lower().rpartition(".")[2] == dtype
    if np.prod(shape) > 0:
        assert mappings() == before + 1
        elements = (ctypes.c_char * np.dtype(dtype).itemsize).from_address(address_of(framework, tensor))
        assert elements.raw == bytes(np.dtype(dtype).itemsize)
        again = shim.empty(shape, like=tensor)
        assert (type(again), again.dtype) == (type(tensor), tensor.dtype)


@pytest.mark.ranks(1)
@pytest.mark.parametrize("framework", OTHERS)
def test_bfloat16_is_the_frameworks_own(framework: str) -> None:
    load(framework)
    assert str(shim.empty(3, "bfloat16", framework).dtype).lower().endswith("bfloat16")


def test_dtypes_are_taken_as_numpy_writes_them() -> None:
    assert shim.empty(2, np.int16).dtype == np.int16
    assert shim.empty(2, np.dtype("int16")).dtype == np.int16
    assert shim.empty(2, bool).dtype == np.bool_
    assert shim.empty(2, np.bool_).dtype == np.bool_


@pytest.mark.frameworks
@pytest.mark.ranks(1)
def test_dtypes_are_taken_as_torch_writes_them() -> None:
    torch = importlib.import_module("torch")
    assert shim.empty(2, torch.int16).dtype == np.int16
    assert shim.empty(2, torch.bfloat16, "torch").dtype == torch.bfloat16


@pytest.mark.ranks(1)
@of_every_framework
def test_memory_lives_as_long_as_a_view_of_it(framework: str) -> None:
    load(framework)
    gc.collect()
    before = files(), mappings()
    tensor = shim.empty((4, 3), "float32", framework)
    view = tensor[2:]
    del tensor
    gc.collect()
    assert (files(), mappings()) == (before[0] + 1, before[1] + 1)
    del view
    gc.collect()
    assert (files(), mappings()) == before


@pytest.mark.parametrize(
    ("error", "told", "arguments"),
    [
        (ArgumentError, "shape must be an integer or a sequence", ("three", "int8")),
        (ArgumentError, "shape must be an integer or a sequence", ((1.5,), "int8")),
        (ArgumentError, "negative", ((3, -1), "int8")),
        (ArgumentError, "one that the engine carries", (3, "float31")),
        (ArgumentError, "one that the engine carries", (3, object())),
        (ArgumentError, "dtype must be given", (3,)),
        (ArgumentError, "like must be a tensor", (3, "int8", "jax")),
        (ArgumentError, "like must be a tensor", (3, "int8", 5)),
        (ArgumentError, "shape must be an integer or a sequence", (b"ab", "int8")),
        (ArgumentError, "more elements than any memory", ((1 << 40, 1 << 40), "int8")),
        (ArgumentError, "more elements than any memory", ((1 << 62, 1 << 62, 0), "int8")),
        (ArgumentError, "at most 16 dimensions", ((1,) * 17, "int8")),
        (OutOfMemoryError, "shim.empty: cannot reserve", (1 << 50, "int8")),
        (OutOfMemoryError, "elements of any dtype do not fit", (1 << 45,)),
    ],
)
def test_wrong_arguments_are_told(error: type[Exception], told: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(error, match=told) as raised:
        shim.empty(*arguments)
    assert isinstance(raised.value, MemoryError) == (error is OutOfMemoryError)


def test_a_framework_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(StateError, match="torch is not imported"):
        shim.empty(3, "int8", "torch")


@pytest.mark.ranks(1)
@pytest.mark.parametrize("framework", OTHERS)
def test_a_dtype_that_the_framework_has_not_is_told(framework: str) -> None:
    load(framework)
    dtype = {"torch": "float8_e3m4", "paddle": "uint16", "mindspore": "float8_e3m4"}[framework]
    with pytest.raises(UnsupportedError, match=dtype):
        shim.empty(3, dtype, framework)


def test_a_dtype_that_numpy_has_only_with_an_extension_is_told() -> None:
    program = "import shim; shim.empty(3, 'float8_e4m3')"  # in a process that nothing has imported the extension into
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 1
    assert "UnsupportedError: shim.empty: numpy has no float8_e4m3 of its own" in ended.stderr


@pytest.mark.ranks(2)
@pytest.mark.engine("shared_memory")
def test_nothing_is_left_of_many_tensors(rank: int, world_size: int) -> None:
    gc.collect()  # what other tests' errors keep
    with world() as group:
        seen = set()
        for cycle in range(300):
            tensor, gathered = shim.empty(10_000, "float32"), shim.empty(20_000, "float32")
            tensor[:] = rank + cycle
            calls.all_gather(ME, group, gathered, tensor).wait()
            assert gathered[0] == cycle
            assert gathered[-1] == 1 + cycle
            calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM).wait()
            assert tensor[0] == tensor[-1] == 1 + 2 * cycle
            if cycle > 10:
                seen.add((files(), mappings()))
        assert len(seen) == 1
        assert mappings() > 3  # the group's memory, two tensors, and what the other rank has lent
        del tensor, gathered
        for _ in range(2):  # the second one begins when the other rank has dropped its tensors
            calls.barrier(ME, group).wait()
        assert mappings() == 1


@pytest.mark.ranks(2, 3)
def test_every_group_reads_the_same_tensor(rank: int, world_size: int) -> None:
    with world() as everyone:
        tensor = shim.empty(20_000, "int64")
        for group in (everyone, groups.new_group(ME), everyone):
            tensor[:] = np.arange(20_000) * (rank + 1)
            calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM).wait()
            assert np.array_equal(tensor, np.arange(20_000) * (world_size * (world_size + 1) // 2))


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("root", [0, 1])
def test_every_rank_gets_its_part_of_another_ranks_tensor(rank: int, world_size: int, root: int) -> None:
    with world() as group:
        length = 20_000
        everything = [np.arange(length * world_size) + 1_000_000 * other for other in range(world_size)]
        own = slice(length * rank, length * (rank + 1))
        tensor, part = shim.empty(length * world_size, "int64"), shim.empty(length, "int64")
        tensor[:] = everything[rank]
        calls.scatter(ME, group, part, tensor, root).wait()
        assert np.array_equal(part, everything[root][own])
        calls.reduce_scatter(ME, group, part, tensor, ReduceOp.SUM).wait()
        assert np.array_equal(part, sum(everything)[own])
        exchanged = shim.empty(length * world_size, "int64")
        calls.all_to_all(ME, group, exchanged, tensor).wait()
        assert np.array_equal(exchanged, np.concatenate([one[own] for one in everything]))
        part[:] = everything[rank][own]
        calls.gather(ME, group, tensor, part, root).wait()
        parts = [one[length * other : length * (other + 1)] for other, one in enumerate(everything)]
        assert np.array_equal(tensor, np.concatenate(parts) if rank == root else everything[rank])


@pytest.mark.ranks(3)
@pytest.mark.engine("shared_memory")
def test_what_an_operation_has_lent_is_not_put_out_by_what_it_lends_next(rank: int, world_size: int) -> None:
    with world() as group:
        old = shim.empty(20_000, "float32")
        kept = []
        for cycle in range(600):  # more than can be lent at a time
            fresh = shim.empty(20_000, "float32")
            kept = [*kept[-99:], fresh]
            old[:], fresh[:] = cycle + rank, -cycle - rank
            outputs = [np.empty(20_000, "float32") for _ in range(world_size)]
            inputs = [old if other == (rank + 1) % world_size else fresh for other in range(world_size)]
            calls.all_to_all(ME, group, outputs, inputs).wait()
            for other, output in enumerate(outputs):
                expected = cycle + other if rank == (other + 1) % world_size else -cycle - other
                assert output[0] == output[-1] == expected
        assert mappings() > 2 * len(kept)  # the others' are still read where they are


@pytest.mark.engine("shared_memory")
@pytest.mark.ranks(2, 3)
def test_messages_go_from_tensor_to_tensor(rank: int, world_size: int) -> None:
    gc.collect()  # what other tests' errors keep
    with world() as group:
        for cycle in range(300):
            mine, theirs = shim.empty(150_000, "float32"), shim.empty(150_000, "float32")
            mine[:] = rank + cycle
            parts = (slice(0, 100_000), slice(100_000, None))  # of which the second one fits the channel
            sent = [calls.send(ME, group, mine[part], (rank + 1) % world_size, tag) for tag, part in enumerate(parts)]
            for work in sent:
                work.start()
            for tag in (1, 0) if cycle % 3 == 0 else (0, 1):
                calls.receive(ME, group, theirs[parts[tag]], (rank - 1) % world_size, tag).wait()
            for work in sent:
                work.wait()
            assert np.all(theirs == (rank - 1) % world_size + cycle)
        calls.barrier(ME, group).wait()  # who was ahead would free what it has lent, which the next receive lets go of
        assert mappings() > 3  # the group's memory, two tensors, and what another rank has lent
        del mine, theirs, work, sent
        for _ in range(2):  # as above
            calls.barrier(ME, group).wait()
        assert mappings() == 1
