"""Collectives in which two ranks read each other's tensors through the kernel, and the variable that says from which size on."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from shim import _native
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.engines.shared_memory import NEVER, chosen_cross_memory
from shim.core.groups import ProcessGroup
from shim.core.job.variables import Variables
from shim.errors import ArgumentError, EngineError

pytestmark = pytest.mark.engine("shared_memory")
ME = Caller("test")
LIBC = ctypes.CDLL(None)
SIZE = 3 * 256 * 1024 + 12  # bytes: chunks, and a part of one


@contextmanager
def group_from(bytes: int) -> Iterator[ProcessGroup]:
    """A group in which what two ranks have for each other, so many bytes each, is read across."""
    try:
        groups.enter_world(ME, "test")
        _native.set_cross_memory_from(bytes)
        group = groups.new_group(ME)
        assert group is not None
        assert dict(group.engine.thresholds())["swap"] == bytes
        yield group
    finally:
        _native.set_cross_memory_from(0)
        groups.close_world()


def content(size: int, seed: int) -> np.ndarray:
    return (np.arange(size) * 7 + np.arange(size) // 251 + seed).astype(np.uint8)


def memory_with_a_hole() -> np.ndarray:
    """SIZE bytes, which nobody can read but for the first and the last page."""
    memory = np.frombuffer(mmap.mmap(-1, SIZE), np.uint8)
    inner = SIZE // mmap.PAGESIZE * mmap.PAGESIZE - mmap.PAGESIZE
    assert LIBC.mprotect(ctypes.c_void_p(memory.ctypes.data + mmap.PAGESIZE), ctypes.c_size_t(inner), 0) == 0
    return memory


def may_rank_1_read_rank_0(group: ProcessGroup) -> bool:
    """Ask the system, on both ranks."""
    word = np.array([4321])
    about = np.array([os.getpid(), word.ctypes.data])
    calls.broadcast(ME, group, about, 0, now=True)
    got = np.zeros(1, np.int64)
    if group.rank == 1:
        here, there = np.array([got.ctypes.data, 8]), np.array([about[1], 8])  # struct iovec
        local, remote = (ctypes.c_void_p(vector.ctypes.data) for vector in (here, there))
        LIBC.process_vm_readv(int(about[0]), local, 1, remote, 1, 0)
    calls.broadcast(ME, group, got, 1, now=True)
    return bool(got[0] == word[0])


@pytest.mark.ranks(2)
def test_the_system_copies_them_where_it_may(rank: int) -> None:
    with group_from(1) as group:
        is_read = may_rank_1_read_rank_0(group)
        tensor = np.zeros(SIZE, np.uint8)
        if rank == 0:
            tensor = memory_with_a_hole() if is_read else content(SIZE, 1)  # a rank that read the hole itself would die
        outputs = [tensor, np.zeros(SIZE, np.uint8)]  # nothing of rank 0's own part is copied where it is its input
        work = calls.all_gather(ME, group, outputs, tensor if rank == 0 else outputs[1])
        if is_read:
            with pytest.raises(EngineError, match=r"the system cannot copy the tensor .*: Bad address"):
                work.wait()
        else:
            work.wait()
            np.testing.assert_array_equal(outputs[0], content(SIZE, 1))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("least", [1, NEVER], ids=["across", "through the rings"])
def test_what_two_ranks_have_for_each_other_arrives(rank: int, least: int) -> None:
    with group_from(least) as group:
        gathered = np.zeros(2 * SIZE, np.uint8)
        calls.all_gather(ME, group, gathered, content(SIZE, rank), now=True).wait()
        np.testing.assert_array_equal(gathered, np.concatenate([content(SIZE, 0), content(SIZE, 1)]))


@pytest.mark.parametrize(
    ("text", "bytes"), [(None, 0), ("", 0), ("1", 1), ("1048576", 1 << 20), ("off", NEVER)], ids=str
)
def test_the_environment_says_from_which_size_on(text: str | None, bytes: int) -> None:
    assert chosen_cross_memory(Variables({} if text is None else {"SHIM_CROSS_MEMORY": text})) == bytes


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1M", "on", "٣", " ", "9" * 5000])
def test_another_value_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="SHIM_CROSS_MEMORY must be off, or a number of bytes from 1 on, got "):
        chosen_cross_memory(Variables({"SHIM_CROSS_MEMORY": text}))


def test_the_world_begins_with_what_the_environment_says() -> None:
    code = "import shim, shim.frontends.torch.distributed as dist; dist.init_process_group(); print(shim.explain())"
    alone = {"SHIM_RANK": "0", "SHIM_WORLD_SIZE": "1", "SHIM_JOB": f"cross memory {os.getpid()}"}
    for text, told in ("12345", "swap 12345"), ("off", "swap never"):
        result = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | alone | {"SHIM_CROSS_MEMORY": text},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert told in result.stdout, result.stderr
