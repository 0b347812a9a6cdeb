"""What ranks do in test_failures.py; in a module of its own, because it runs in other processes."""

from __future__ import annotations

import os
import signal
import threading
import time
import weakref
from pathlib import Path
from typing import NamedTuple

import numpy as np

import shim
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.errors import CollectiveTimeoutError, PeerLostError, ShimError

ME = Caller("test", output="tensor", input="tensor")
VICTIM = 1


class Caught(NamedTuple):
    """What a surviving rank saw."""

    error: str  # its class
    message: str
    ranks: tuple[int, ...]
    at: float  # time.time()
    again: str  # the class of what the next call raised
    again_after: float  # seconds it took


def world(timeout: float = 20.0) -> ProcessGroup:
    """Enter a new world; the one of the function before, which may have failed, is left."""
    if groups.is_initialized():
        groups.close_group(groups.world(ME))
    return groups.enter_world(ME, "test", timeout=timeout)


def sum_up(group: ProcessGroup, tensor: np.ndarray) -> None:
    calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM).wait()


def caught(group: ProcessGroup, error: ShimError) -> Caught:
    at = time.time()
    again = "nothing"
    try:
        calls.barrier(ME, group).wait()
    except ShimError as second:
        again = type(second).__name__
    ranks = error.ranks if isinstance(error, (PeerLostError, CollectiveTimeoutError)) else ()
    return Caught(type(error).__name__, str(error), ranks, at, again, time.time() - at)


def lose_a_rank(how: str, count: int, is_shared: bool, way: str, note: Path) -> Caught:
    """Loop over all_reduce until the victim goes, which writes into *note* when."""
    group = world()
    tensor = shim.empty(count, "float64") if is_shared else np.ones(count)
    for step in range(1_000_000):
        if group.rank == VICTIM and step == 50:
            note.write_text(str(time.time()))
            go(how)
        try:
            work = calls.all_reduce(ME, group, tensor, tensor, ReduceOp.MAX, now=way == "now")
            if way == "started":
                work.start()
            work.wait()
        except ShimError as error:
            return caught(group, error)
    raise AssertionError("nobody noticed")


def lose_a_rank_of_many_groups(count: int, note: Path) -> list[Caught]:
    """Return what a survivor sees in each of so many groups when the victim is killed."""
    many = [world()]
    many += [groups.new_group(ME, [0, 1, 2]) for _ in range(count)]
    if many[0].rank == VICTIM:
        note.write_text(str(time.time()))
        go("kill")
    seen = []
    for group in many:
        try:
            sum_up(group, np.ones(3))
        except ShimError as error:
            seen.append(caught(group, error))
    return seen


def go(how: str) -> None:
    if how == "leave":
        groups.close_group(groups.world(ME))
        time.sleep(1)
    elif how == "exit":
        os._exit(3)
    elif how == "kill with a forked helper":
        if os.fork() == 0:  # holds the victim's files open while it dies, as a data loader's worker would
            time.sleep(1)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def wait_for_an_absent_rank(operation: str) -> Caught | None:
    group = world(timeout=5.0)  # in which they have to meet, too
    tensor = np.ones(3)
    if group.rank == VICTIM:
        time.sleep(5.5)
        return None
    try:
        if operation == "receive":
            calls.receive(ME, group, tensor, VICTIM).wait()
        elif operation == "started":
            work = calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM)
            work.start()
            work.wait()
        else:
            calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=operation == "now").wait()
    except ShimError as error:
        return caught(group, error)
    raise AssertionError("it did not time out")


def never_come() -> tuple[str, str, float] | None:
    """Enter a world to which rank 1 does not come."""
    start = time.time()
    if int(os.environ["SHIM_RANK"]) == VICTIM:
        time.sleep(6.0)
        return None
    try:
        world(timeout=5.0)
    except ShimError as error:
        return type(error).__name__, str(error), time.time() - start
    raise AssertionError("it met a rank that is not there")


def interrupt_a_wait(way: str) -> tuple[bool, str]:
    """Press Ctrl-C on rank 0 while it waits for the others, who come later."""
    group = world()
    if group.rank > 0:
        time.sleep(1.0)
        return True, ""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    interrupted = False
    try:
        calls.barrier(ME, group, now=way == "now").wait()
    except KeyboardInterrupt:
        interrupted = True
    try:
        calls.barrier(ME, group).wait()
    except ShimError as error:
        return interrupted, f"{type(error).__name__}: {error}"
    return interrupted, "no error"


def use_after_fork() -> tuple[str, list[float]]:
    """Use the group in a forked child, which must not disturb it, and then in the parent."""
    group = world()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            calls.barrier(ME, group).wait()
            os.write(writer, b"no error")
        except ShimError as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        groups.close_group(group)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        told = stream.read()
    os.waitpid(child, 0)
    tensor = np.full(2, float(group.rank + 1))
    sum_up(group, tensor)
    groups.close_group(group)
    return told, tensor.tolist()


def wait_in_a_forked_child() -> tuple[str, float]:
    """Start a work that cannot end yet, and wait for it in a forked child, where nobody carries it out or holds it."""
    group = world()
    tensor = np.ones(3)
    held = weakref.ref(tensor)
    work = calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM)
    if group.rank == 0:
        time.sleep(0.5)  # the others' works are still under way when they fork
    work.start()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work.wait()
            os.write(writer, b"no error")
        except ShimError as error:
            os.write(writer, type(error).__name__.encode())
        del work, tensor
        os.write(writer, b", let go" if held() is None else b", held")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        told = stream.read()
    os.waitpid(child, 0)
    work.wait()
    groups.close_group(group)
    return told, float(tensor[0])


def enter_and_leave(times: int) -> tuple[list[int], list[int]]:
    """Return the numbers of open files, threads and mappings before and after entering the world many times."""

    def held() -> list[int]:
        with open("/proc/self/maps") as maps:
            mappings = sum("memfd:shim" in line for line in maps)
        return [len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), mappings]

    def once() -> None:
        group = world()
        half = groups.new_group(ME, [0, 1])
        tensor = np.ones(100_000)
        work = calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM)
        work.start()
        work.wait()
        if half.rank >= 0:
            sum_up(half, tensor)
        groups.close_group(group)

    once()  # the watching thread stays
    before = held()
    for _ in range(times):
        once()
    until = time.monotonic() + 3  # some engines' threads end a moment later
    while any(now > then for now, then in zip(held(), before, strict=True)) and time.monotonic() < until:
        time.sleep(0.01)
    return before, held()
