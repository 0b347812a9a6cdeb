"""What ranks do in test_limits.py; in a module of its own, because it runs in other processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.errors import PeerLostError, ShimError

ME = Caller("test")
LIMITED = 1  # the rank that has too little


@contextmanager
def world() -> Iterator[ProcessGroup]:
    try:
        yield groups.enter_world(ME, "test", timeout=20)
    finally:
        groups.close_world()


def total(group: ProcessGroup, value: float = 1.0) -> float:
    tensor = np.full(3, value)
    calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM).wait()
    return float(tensor[0])


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) - 1


@contextmanager
def limited(what: int, to: int) -> Iterator[None]:
    before = resource.getrlimit(what)
    resource.setrlimit(what, (to, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(what, before)


def make_a_group_with_descriptors_left(limited_rank: int, left: int, is_checked: bool) -> tuple[str, float, int]:
    """Return what was raised, the sum in the world afterwards, and by how many descriptors this process has grown.

    Where it is not checked whether there are enough, the ranks find out while they meet.
    """
    with world() as group, pytest.MonkeyPatch.context() as patch:
        if not is_checked:
            patch.setattr(sys.modules["shim.core.groups.world"], "check_members", lambda *arguments: None)
        groups.close_group(groups.new_group(ME, [0, 1]))  # what is opened once for all groups is open
        total(group)
        before = descriptors()
        # Whatever is opened gets the lowest number: the limit leaves so many of those that are free.
        free = [number for number in range(before + left + 64) if not os.path.exists(f"/proc/self/fd/{number}")]
        raised = ""
        usual = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        with limited(resource.RLIMIT_NOFILE, free[left] if group.rank == limited_rank else usual):
            try:
                groups.close_group(groups.new_group(ME, [0, 1]))
            except ShimError as error:
                raised = f"{type(error).__name__}: {error}"
        return raised, total(group), descriptors() - before


def make_a_group_with_memory_left(left: int) -> tuple[str, float]:
    with world() as group:
        total(group)
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        raised = ""
        with limited(resource.RLIMIT_AS, used + left if group.rank == LIMITED else resource.RLIM_INFINITY):
            try:
                groups.close_group(groups.new_group(ME, [0, 1]))
            except (ShimError, MemoryError) as error:
                raised = f"{type(error).__name__}: {error}"
        return raised, total(group)


def make_many_groups(count: int, is_kept: bool) -> tuple[float, int]:
    """Return the sum of the sums in so many groups, and by how many descriptors this process has grown with them."""
    with world() as group:
        ranks = list(range(group.size))
        groups.close_group(groups.new_group(ME, ranks))  # what is opened once for all groups is open
        before = descriptors()
        kept = []
        sums = 0.0
        for _ in range(count):
            one = groups.new_group(ME, ranks)
            sums += total(one)
            if is_kept:
                kept.append(one)
            else:
                groups.close_group(one)
        grown = descriptors() - before
        for one in kept:
            sums += total(one)
        return sums, grown


def call_without_memory_for_a_ring() -> tuple[str, bool, float]:
    """Return what a sum raised for which one rank had no memory, whether its tensor was left alone, and a sum that needs none."""
    with world() as group:
        if group.rank == LIMITED:
            forbid_ring_of_last_rank()
        tensor = np.full(100_000, group.rank)
        raised = ""
        try:
            calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM).wait()
        except ShimError as error:
            raised = f"{type(error).__name__}: {error}"
        return raised, bool((tensor == group.rank).all()), total(group)


def forbid_ring_of_last_rank() -> None:
    """Nothing can be reserved where nothing may be written: as where no memory is left. A rank that touched it would die."""
    bytes_of_ring = 1 << 20
    with open("/proc/self/maps") as maps:
        ends = [int(line.split()[0].split("-")[1], 16) for line in maps if "memfd:shim" in line]
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if protect(max(ends) - bytes_of_ring, bytes_of_ring, 0) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")


def call_in_a_forked_child() -> tuple[int, float]:
    """Return with how many errors that are ours a child ends, and the sum afterwards."""
    with world() as group:
        total(group)
        child = os.fork()
        if child == 0:
            errors = 0
            for attempt in (
                lambda: total(group),
                lambda: groups.new_group(ME, [0, 1]),
                lambda: calls.send(ME, group, np.ones(3), 0).wait(),
            ):
                try:
                    attempt()
                except ShimError:
                    errors += 1
            os._exit(errors)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), total(group)


def call_in_threads(threads: int, times: int) -> list[float]:
    """Make the same calls in many threads of each rank at once, which meet in the order they come."""
    with world() as group:
        sums: list[float] = []

        def work() -> None:
            for _ in range(times):
                sums.append(total(group, group.rank + 1.0))

        running = [threading.Thread(target=work) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return sums


def fail_to_become_another_program(way: str) -> float:
    """Return the sum after an os.exec that cannot be."""
    with world() as group:
        if group.rank == LIMITED:
            with contextlib.suppress(OSError):
                os.execv("/nonexistent/program", ["program"]) if way == "execv" else os.execvp(
                    "nonexistent", ["program"]
                )
        return total(group)


def files_of_a_world() -> list[str]:
    """Return the files that lie in a file system and that this process has because of a world and a group in it."""

    def here() -> set[str]:
        opened = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
        with open("/proc/self/maps") as maps:
            mapped = [line.split(maxsplit=5)[5].strip() for line in maps if len(line.split(maxsplit=5)) > 5]
        return {name for name in (*opened, *mapped) if os.path.exists(name) and not name.startswith("/proc/")}

    with world() as group:
        total(group)  # what is loaded at the first call is there
    before = here()
    with world() as group:
        groups.new_group(ME, [0, 1])
        total(group)
        return sorted(here() - before)


PROGRAM = """
import os, sys, numpy
from shim.core import calls, groups
from shim.core.callers import Caller
world = groups.enter_world(Caller("test"), "test", timeout=20)
if world.rank == {rank}:
    {do}
calls.barrier(Caller("test"), world).wait()
"""


def lose_a_rank_that(does: str) -> str:
    """Return what rank 0 reads of rank 1, which is the program that does it, without its number."""
    if os.environ["SHIM_RANK"] == str(LIMITED):
        program = PROGRAM.format(rank=LIMITED, do=does)
        with subprocess.Popen([sys.executable, "-c", program], env=os.environ) as running:
            return str(running.wait(30))
    with world() as group:
        begin = time.monotonic()
        try:
            while time.monotonic() - begin < 15:  # what rank 1 has started may be the first of them
                calls.barrier(ME, group).wait()
        except PeerLostError as error:
            return str(error)
    return "nothing"
