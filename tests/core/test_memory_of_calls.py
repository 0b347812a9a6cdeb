"""How long a call keeps its tensors, and what happens where there is no memory for it."""

from __future__ import annotations

import gc
import importlib
import resource
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core_world import world

from shim.core import calls, objects
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.errors import MismatchError, OutOfMemoryError, TensorError

ME = Caller("test")


def tensor_of(framework: str, count: int, value: float) -> Any:
    if framework == "torch":
        return importlib.import_module("torch").full((count,), value)
    return np.full(count, value, "float32")


def assert_let_go(tensor: weakref.ref[Any]) -> None:
    for _ in range(
        500
    ):  # the thread that ends a call leaves it to the main thread, which comes to it between two lines
        if tensor() is None:
            return
        gc.collect()
        time.sleep(0.01)
    raise AssertionError(f"still there: {gc.get_referrers(tensor())}")


def start_sum(group: ProcessGroup, tensor: Any) -> Any:
    return calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM).start()


@pytest.mark.ranks(1, 2)
def test_a_refused_call_lets_go_of_its_tensors_without_the_collector(rank: int, world_size: int) -> None:
    with world() as group:
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                array = np.zeros(3, ">f4")
                there = weakref.ref(array)
                with pytest.raises(TensorError):
                    calls.all_reduce(ME, group, array, array, ReduceOp.SUM)
                del array
                until = time.monotonic() + 1.0  # over a network, a thread may still be telling the others
                while there() is not None and time.monotonic() < until:
                    time.sleep(0.001)
                assert there() is None
        finally:
            gc.enable()


@pytest.mark.frameworks
@pytest.mark.ranks(1, 2, 3)
@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("count", [3, 300_000])
def test_a_call_that_has_ended_keeps_no_tensor(rank: int, world_size: int, framework: str, count: int) -> None:
    with world() as group:
        tensor = tensor_of(framework, count, rank + 1.0)
        kept = weakref.ref(tensor)
        work = start_sum(group, tensor)
        work.wait()
        assert float(tensor[-1]) == sum(range(1, world_size + 1))
        del work, tensor
        assert kept() is None


@pytest.mark.frameworks
@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("transfer", [False, True])
def test_a_dropped_call_keeps_its_tensor_until_it_has_ended(
    rank: int, world_size: int, framework: str, transfer: bool
) -> None:
    with world() as group:
        store = np.zeros(1)
        tensor = tensor_of(framework, 300_000, 1.0)
        kept = weakref.ref(tensor)
        if rank == 0:
            work = calls.receive(ME, group, tensor, 1).start() if transfer else start_sum(group, tensor)
            del work, tensor
            gc.collect()
            assert kept() is not None
            for peer in range(1, world_size):  # now they may come
                calls.send(ME, group, store, peer, 7).wait()
        else:
            calls.receive(ME, group, store, 0, 7).wait()
            if not transfer:
                start_sum(group, tensor).wait()
            elif rank == 1:
                calls.send(ME, group, tensor, 0).wait()
            del tensor
        assert_let_go(kept)
        calls.barrier(ME, group).wait()


OBJECTS: dict[str, Callable[[ProcessGroup, Any], Any]] = {
    "all_gather": lambda group, thing: objects.all_gather(ME, group, thing),
    "broadcast": lambda group, thing: objects.broadcast(ME, group, [thing], 0),
    "scatter": lambda group, thing: objects.scatter(ME, group, [thing] * group.size, 0),
    "send": lambda group, thing: (
        objects.send(ME, group, [thing], 1) if group.rank == 0 else objects.receive(ME, group, 1, 0)
    ),
}


@pytest.mark.ranks(2)
@pytest.mark.parametrize("name", OBJECTS)
def test_no_memory_for_objects_is_told(rank: int, name: str) -> None:
    with world() as group:
        thing = bytes(100_000_000) if rank == 0 else b""
        objects.all_gather(ME, group, 1)  # what is made at the first call is there
        limits = resource.getrlimit(resource.RLIMIT_AS)
        if rank == 1:
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()  # noqa: SIM115
            resource.setrlimit(resource.RLIMIT_AS, (used + 20_000_000, limits[1]))
        try:
            if rank == 1:
                with pytest.raises(OutOfMemoryError, match=r"not enough memory for \d+ bytes of objects"):
                    OBJECTS[name](group, thing)
            else:
                told = "rank 1 did not expect" if name == "send" else "rank 1: refused: .*not enough memory"
                with pytest.raises(MismatchError, match=told):
                    OBJECTS[name](group, thing)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
        assert objects.all_gather(ME, group, rank) == [0, 1]


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("way", ["now", "waited", "started"])
def test_no_memory_for_a_copy_is_told_to_everybody(rank: int, world_size: int, way: str) -> None:
    def sum_up(tensor: Any) -> None:
        work = calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=way == "now")
        if way == "started":
            work.start()
        work.wait()

    with world() as group:
        tensor = np.zeros(60_000_000, "float32")[::2]
        sum_up(np.zeros(3))  # what is made at the first call is there
        limits = resource.getrlimit(resource.RLIMIT_AS)
        if rank == 1:
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()  # noqa: SIM115
            resource.setrlimit(resource.RLIMIT_AS, (used + 20_000_000, limits[1]))
        try:
            with pytest.raises(OutOfMemoryError if rank == 1 else MismatchError, match="not enough memory"):
                sum_up(tensor)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
        one = np.ones(3)
        sum_up(one)
        assert one.tolist() == [world_size] * 3
