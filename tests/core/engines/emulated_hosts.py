"""What ranks of one host do that play ranks of several: random calls against the oracle, and what they say of their groups."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from unittest import mock

import numpy as np

import shim
from shim.conformance.oracle import Array
from shim.conformance.soak import soak
from shim.conformance.soak.soak import difference
from shim.core import calls, groups, objects
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp
from shim.errors import ShimError

ME = Caller("test")
_LARGEST_SUM = 32.0  # of normally distributed elements of five ranks
_ROUNDINGS = 4  # that two orders of the same elements may differ by
_EPSILONS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


def close_difference(seen: Array, expected: Array) -> str:
    """Say where *seen* differs from *expected*, floats by more than what the order of a sum's elements makes."""
    if not (told := difference(seen, expected)) or seen.shape != expected.shape or seen.dtype != expected.dtype:
        return told
    if seen.dtype.name not in _EPSILONS and seen.dtype.kind not in "fc":
        return told
    epsilon = _EPSILONS.get(seen.dtype.name) or float(np.finfo(seen.dtype).eps)
    left, right = _reals(seen), _reals(expected)
    with np.errstate(invalid="ignore"):
        allowed = _ROUNDINGS * epsilon * np.maximum(np.abs(right), _LARGEST_SUM)
        is_close = (left == right) | (np.isnan(left) & np.isnan(right)) | (np.abs(left - right) <= allowed)
    if seen.dtype.kind == "c":  # of a product with infinities, the order says which parts are NaN
        is_close |= ~np.isfinite(left).all(axis=0) & ~np.isfinite(right).all(axis=0)
    return "" if is_close.all() else told


def _reals(array: Array) -> Array:
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag])
    return array.astype(np.float64)


@contextmanager
def played(engine: str, hosts: int) -> Iterator[None]:
    """Have the next world of this rank on *engine* and on so many *hosts*."""
    told = {"SHIM_ENGINE": engine, "SHIM_EMULATED_HOSTS": str(hosts), "SHIM_ACROSS": "gloo"}
    with mock.patch.dict(os.environ, told):
        try:
            yield
        finally:
            groups.close_world()


def carry_out(engine: str, hosts: int, era: soak.Era) -> tuple[soak.Found, str]:
    """Carry *era* out on *hosts*, and return what it gave and what is said of the world."""
    compare = close_difference if engine == "hierarchical" else difference
    with played(engine, hosts), mock.patch.object(soak, "difference", compare):
        found = soak.carry_out(era)
        return found, shim.explain()


def wait_in_a_circle(engine: str) -> tuple[str, float]:
    """Return what is told on rank 0, which waits in one group for ranks that wait in another one for it, and after how many seconds.

    It asks the others where they are before its time is up, as it warns of the wait.
    """
    with played(engine, 2), mock.patch.dict(os.environ, {"SHIM_STALL_WARNING": "1.5"}):
        world = groups.enter_world(ME, "test", timeout=60.0)
        pairs = groups.new_group(ME, world.ranks, name="pairs", timeout=2.0 if world.rank == 0 else 60.0)
        calls.barrier(ME, world).wait()
        told, began = "", time.monotonic()
        if world.rank == 0:
            try:
                calls.barrier(ME, pairs).wait()
            except ShimError as error:
                told = str(error)
        seconds = time.monotonic() - began
        calls.barrier(ME, world).wait()
        return told, seconds


def survivors_of(dying: str) -> str:
    """Return the ranks that are left, or what is told of them, on one of four ranks on two hosts, when a *host* dies or *rank 0*.

    The second host's ranks die one after the other, the last one after it has stopped.
    """
    with played("hierarchical", 2):
        world = groups.enter_world(ME, "test", timeout=60.0)
        processes = objects.all_gather(Caller("test", input="item"), world, os.getpid())
        if world.rank == 1 and dying == "host":
            os.kill(processes[3], signal.SIGSTOP)
            threading.Timer(0.4, os.kill, (processes[3], signal.SIGKILL)).start()
            os.kill(processes[2], signal.SIGKILL)
        if world.rank == 1 and dying == "rank 0":
            os.kill(processes[0], signal.SIGKILL)
        if world.rank in ((2, 3) if dying == "host" else (0,)):
            time.sleep(60.0)  # or it might be in the barrier before it dies
        with suppress(ShimError):
            calls.barrier(ME, world).wait()
        try:
            left = shim.survivors()
            calls.barrier(ME, groups.new_group(ME, left, name="rest", timeout=20.0)).wait()
            return str(left)
        except ShimError as error:
            return f"{type(error).__name__}: {error}"


def cost_of_groups(count: int) -> tuple[int, int]:
    """Return how many descriptors and threads *count* groups of all ranks on two hosts cost this rank, each of which has carried out a small call."""
    with played("hierarchical", 2):
        world = groups.enter_world(ME, "test", timeout=60.0)
        data = np.ones(1000)
        calls.all_reduce(ME, world, data, data, ReduceOp.SUM).wait()
        before = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
        for number in range(count):
            group = groups.new_group(ME, world.ranks, name=f"group {number}", timeout=60.0)
            calls.all_reduce(ME, group, data, data, ReduceOp.SUM).wait()
        after = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
        assert (data == 4.0 ** (count + 1)).all()
        calls.barrier(ME, world).wait()  # who leaves costs the others a thread till its last words have come
        return after[0] - before[0], after[1] - before[1]


def left_of_worlds(count: int) -> list[int]:
    """Return how many descriptors this rank has after each of *count* worlds on two hosts."""
    found = []
    for _ in range(count):
        with played("hierarchical", 2):
            calls.barrier(ME, groups.enter_world(ME, "test", timeout=60.0)).wait()
        time.sleep(0.3)  # in which rank 0's process ends its hub
        found.append(len(os.listdir("/proc/self/fd")))
    return found


def made_again(name: str) -> list[float]:
    """Return what the ranks of a group called *name* sum up to, each time when it is made again."""
    sums = []
    with played("hierarchical", 2):
        world = groups.enter_world(ME, "test", timeout=20.0)
        for _ in range(3):
            group = groups.new_group(ME, world.ranks, name=name, timeout=5.0)
            data = np.ones(3)
            calls.all_reduce(ME, group, data, data, ReduceOp.SUM).wait()
            sums.append(float(data[0]))
            groups.close_group(group)
            calls.barrier(ME, world).wait()
    return sums


def refused_by_a_leader_that_leaves() -> str:
    """Return the error of a call that rank 0 has refused before it left, while the others come later."""
    with played("hierarchical", 2):
        world = groups.enter_world(ME, "test", timeout=20.0)
        calls.barrier(ME, world).wait()
        data = np.ones(3)
        try:
            if world.rank == 0:
                calls.all_reduce(ME, world, data, np.ones(4), ReduceOp.SUM).wait()
            else:
                time.sleep(0.2)
                calls.all_reduce(ME, world, data, data, ReduceOp.SUM).wait()
        except ShimError as error:
            return type(error).__name__
        return "none"


def wait_behind_a_large_frame() -> float:
    """Return after how many seconds rank 0 has had an all_reduce after which it owes its peer a large frame, which that takes after a message."""
    with played("c10d", 2):
        world = groups.enter_world(ME, "test", timeout=20.0)
        small, large = (groups.new_group(ME, world.ranks, timeout=20.0) for _ in range(2))
        data, mine, every = np.ones(1), np.ones(120_000), np.ones(240_000)
        calls.send(ME, world, data, 1).wait() if world.rank == 0 else calls.receive(ME, world, data, 0).wait()
        calls.barrier(ME, world).wait()
        begun = time.monotonic()
        work = calls.all_reduce(ME, small, data, data, ReduceOp.SUM)
        work.start()
        if world.rank == 0:
            later = calls.all_gather(ME, large, every, mine)
            later.start()
            work.wait()
            seconds = time.monotonic() - begun
            calls.send(ME, world, data, 1).wait()
            later.wait()
        else:
            work.wait()
            seconds = time.monotonic() - begun
            calls.receive(ME, world, data, 0).wait()
            calls.all_gather(ME, large, every, mine).wait()
        return seconds


def sent_before_leaving() -> list[float]:
    """Return what rank 1 has of a message of rank 0, which leaves at once."""
    with played("c10d", 2):
        world = groups.enter_world(ME, "test", timeout=30.0)
        data = np.zeros(3)
        if world.rank == 0:
            calls.send(ME, world, np.ones(3), 1).wait()
        else:
            calls.receive(ME, world, data, 0).wait()
        return list(data)


def first_message_when_one_has_left(engine: str, hosts: int, leaving: int, count: int) -> str:
    """Return what becomes of a message of the first rank that is left to the last one, which is the group's first, after *leaving* has left."""
    with played(engine, hosts):
        world = groups.enter_world(ME, "test", timeout=20.0)
        calls.barrier(ME, world).wait()
        if world.rank == leaving:
            return "left"
        time.sleep(0.3)
        first, *_, last = (rank for rank in world.ranks if rank != leaving)
        data = np.full(count, float(world.rank))
        try:
            if world.rank == first:
                calls.send(ME, world, data, last).wait()
            if world.rank == last:
                calls.receive(ME, world, data, first).wait()
        except ShimError as error:
            return type(error).__name__
        finally:
            time.sleep(6.0 if world.rank not in (first, last) else 0.0)  # so that nobody leaves besides
        return str(data[-1] if world.rank == last else "done")


def refused(variable: str, value: str) -> str:
    """Return what is said of *value* for *variable*."""
    told = {"SHIM_ENGINE": "hierarchical", "SHIM_EMULATED_HOSTS": "2", variable: value}
    with mock.patch.dict(os.environ, told):
        try:
            groups.enter_world(ME, "test", timeout=5.0)
        except ShimError as error:
            return f"{type(error).__name__}: {error}"
        groups.close_world()
        return "no error"
