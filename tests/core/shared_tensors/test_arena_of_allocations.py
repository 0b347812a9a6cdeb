"""The memory of what is allocated inside ``shim.shared_allocations``: given back, by any thread, and of each process its own."""

from __future__ import annotations

import gc
import os
import resource
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from allocated_tensors import MANY, is_shared, load, of_every_framework, zeros

import shim
from shim import _native


def usage() -> tuple[int, int, int]:
    gc.collect()
    return _native.arena_usage()


@pytest.mark.ranks(1)
@of_every_framework
def test_memory_is_given_back(framework: str) -> None:
    load(framework)
    assert usage() == (0, 0, 0)
    reserved = set()
    with shim.shared_allocations():
        kept: list[Any] = []
        for cycle in range(5000):
            tensor = zeros(framework, 8192 + cycle % 100 * 512)
            tensor[:] = cycle
            assert all(int(other[0]) == int(other[-1]) == cycle - len(kept) + i for i, other in enumerate(kept))
            kept = [*kept[-9:], tensor]
            if cycle > 1000:
                reserved.add(_native.arena_usage()[1])
        assert len(reserved) == 1
        del tensor
        allocated = _native.arena_usage()[0]
        assert sum(map(len, kept)) * 4 <= allocated < sum(map(len, kept)) * 4 + len(kept) * 4096
        kept.clear()
        assert usage()[0] == 0
        survivor = zeros(framework, MANY)
    assert usage() == (20 * 4096, 8 << 20, 1)
    del survivor
    assert usage() == (0, 0, 0)


@pytest.mark.ranks(1)
@of_every_framework
def test_many_tensors_need_few_descriptors(framework: str) -> None:
    load(framework)
    before = len(os.listdir("/proc/self/fd"))
    with shim.shared_allocations():
        tensors = [zeros(framework, 8192) for _ in range(2000)]
    assert all(map(is_shared, tensors))
    assert len(os.listdir("/proc/self/fd")) - before <= 4


@pytest.mark.ranks(1)
@of_every_framework
def test_without_descriptors_memory_is_ordinary(framework: str) -> None:
    load(framework)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with shim.shared_allocations():
        zeros(framework, 8)  # what the framework opens once
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 30, hard))
            tensor = zeros(framework, MANY)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert not is_shared(tensor)
        assert is_shared(zeros(framework, MANY))


def test_memory_that_the_machine_has_not_fails_as_ever() -> None:
    with shim.shared_allocations(), pytest.raises(MemoryError):
        np.empty(1 << 60, "uint8")


@pytest.mark.ranks(1)
@of_every_framework
def test_tensors_are_freed_by_any_thread(framework: str) -> None:
    load(framework)
    wrong: list[str] = []

    def work(number: int) -> None:
        with shim.shared_allocations():
            for cycle in range(300):
                tensor = zeros(framework, 8192 + 1024 * (cycle % 7))
                tensor[:] = number
                before, handed[number] = handed[(number + 1) % 4], tensor
                if before is not None and not int(before[0]) == int(before[-1]) == (number + 1) % 4:
                    wrong.append(f"{number}: {before}")

    handed: list[Any] = [None] * 4
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    handed.clear()
    assert usage() == (0, 0, 0)


def in_a_child(body: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        os._exit(0 if body() else 1)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.ranks(1)
@of_every_framework
def test_a_forked_child_has_tensors_of_its_own(framework: str) -> None:
    load(framework)
    with shim.shared_allocations():
        theirs = [zeros(framework, MANY) for _ in range(3)]

        def child() -> bool:
            fresh = [zeros(framework, MANY) for _ in range(3)]
            for i, tensor in enumerate(theirs + fresh):
                tensor[:] = i + 1
            right = all(int(tensor[0]) == i + 1 for i, tensor in enumerate(theirs + fresh))
            shared = not any(map(is_shared, theirs)) and all(map(is_shared, fresh))
            theirs.clear()
            fresh.clear()
            del tensor
            return right and shared and _native.arena_usage()[0] == 0

        assert in_a_child(child)
        assert [int(tensor[5]) for tensor in theirs] == [0, 0, 0]
        assert all(map(is_shared, theirs))


@pytest.mark.ranks(1)
@of_every_framework
def test_a_forked_child_keeps_what_its_parent_frees(framework: str) -> None:
    load(framework)
    reading, writing = os.pipe()
    with shim.shared_allocations():
        tensor, kept = zeros(framework, MANY), zeros(framework, MANY)
        tensor[:] = 7
        child = os.fork()
        if child == 0:
            os.read(reading, 1)
            os._exit(0 if int(tensor[0]) == int(tensor[-1]) == 7 else 1)
        del tensor
        fresh = [zeros(framework, MANY) for _ in range(5)]
        for other in fresh:
            other[:] = 8
        os.write(writing, b"x")
        assert os.waitpid(child, 0)[1] == 0
        assert int(kept[0]) == 0
    os.close(reading)
    os.close(writing)
