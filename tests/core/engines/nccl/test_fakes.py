"""The fakes end the process of whoever uses NCCL or CUDA wrongly, so that a test of the engine cannot pass by luck."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TOLD = {
    "host_memory": "ncclAllReduce: memory that is not the device's",
    "too_many_elements": "ncclAllReduce: more memory than was allocated",
    "memory_of_another_device": "ncclAllReduce: memory of another device",
    "no_context": "ncclAllReduce: no context is current",
    "context_of_another_device": "ncclAllReduce: another device is current than the communicator's",
    "destroyed_communicator": "ncclAllReduce: a communicator that is none, or was destroyed",
    "aborted_communicator": "ncclAllReduce: a communicator that is none, or was destroyed",
    "destroyed_stream": "ncclGroupEnd: a stream that is none, or was destroyed",
    "stream_of_another_device": "ncclGroupEnd: a stream of another device",
    "message_to_itself_alone": "ncclSend: a message to itself outside of a group",
    "destroyed_while_busy": "ncclCommDestroy: operations are under way",
    "identity_used_again": "ncclCommInitRank: a unique id that is none, or was used before",
    "event_of_another_device": "cuEventRecord: an event of another device",
    "stream_without_a_context": "cuStreamQuery: no context is current",
    "two_threads_in_a_communicator": "ncclAllReduce: two threads at once use a communicator",
    "aborted_while_it_launches": "ncclCommAbort: another thread launches",
    "destroyed_reduce_op": "ncclRedOpDestroy: an operation that is none",
    "different_counts": "the ranks' calls differ: the real one would hang",
    "different_sizes_of_a_message": "another size than was sent: the real one would hang",
    "freed_while_another_process_has_it_open": "cuMemFree: memory that another process has open",
    "opened_by_its_own_process": "cuIpcOpen: what this process has made itself",
    "exported_memory_of_a_stream": "cuIpcGetMemHandle: memory of cuMemAllocAsync",
}


def _paths() -> str:
    here = Path(__file__).parent
    return os.pathsep.join((str(here.parents[3]), str(here.parents[2]), str(here)))


@pytest.fixture(scope="module")
def outcomes() -> dict[str, tuple[int, str]]:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("wrong_uses.py"))],
        env={**os.environ, "PYTHONPATH": _paths()},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    found: dict[str, tuple[int, str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("use", TOLD)
def test_a_wrong_use_ends_the_process(outcomes: dict[str, tuple[int, str]], use: str) -> None:
    status, said = outcomes[use]
    assert status == -signal.SIGABRT, said
    assert TOLD[use] in said


def test_all_wrong_uses_are_told(outcomes: dict[str, tuple[int, str]]) -> None:
    assert outcomes.keys() == TOLD.keys()


BESIDE = """
import ctypes, shutil, sys
from pathlib import Path
import fake_device
real = Path(sys.argv[1])
for name in ("libcuda.so.1", "libnccl.so.2", "libnvrtc.so.12"):
    shutil.copy(fake_device._FOLDER / "libnvrtc-builtins.so.12", real / name)  # which has none of their functions
    ctypes.CDLL(str(real / name))
import numpy as np
from shim.core import calls
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp
import shim
with fake_device.world() as group:
    tensor = fake_device.FakeTensor(np.ones(3))
    calls.all_reduce(Caller("test"), group, tensor, tensor, ReduceOp.SUM, now=True)
    fake_device.check(tensor, np.ones(3))
    assert str(fake_device._FOLDER / "libnccl.so.2") in shim.explain(), shim.explain()
"""


def test_the_fakes_serve_beside_libraries_that_torch_has_loaded(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BESIDE, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": _paths(), "RANK": "0", "WORLD_SIZE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
