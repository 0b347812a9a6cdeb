"""The same calls of primitives with MindSpore's own CPU world and with ours, in the same processes.

Of the primitives, only AllReduce ("sum"), AllGather and Broadcast have kernels for the CPU, and those not for every dtype.
Not called: AllGather of a tensor of shape (), which ends the real process by a signal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mindspore_comparison import assert_raised, assert_same
from real_and_ours import CALLS, RAISES

from shim.conformance.examples.adapting import free_ports

RANKS = 2

# What ours does where the real primitive cannot or does something else, for rank 0 and 1, each with the reason.
_TOTAL = {"shape": [2, 3], "elements": [[12, 14, 16], [18, 20, 22]]}
INTENDED: dict[str, tuple[Any, Any, str]] = {
    "AllReduce of bool": (
        *[{"dtype": "Bool", "shape": [2, 3], "elements": [[True, True, True], [True, True, True]]}] * 2,
        "bool is reduced by every function here; the real one refuses it",
    ),
    "AllReduce of int32": (*[{**_TOTAL, "dtype": "Int32"}] * 2, "the real kernel knows float16 and float32"),
    "AllReduce max": (
        *[{"dtype": "Float32", "shape": [2, 3], "elements": [[11, 12, 13], [14, 15, 16]]}] * 2,
        "the real kernel knows 'sum'",
    ),
    "Broadcast of two": (
        *[
            [
                {"dtype": "Float32", "shape": [2], "elements": [1, 2]},
                {"dtype": "Int32", "shape": [3], "elements": [1, 2, 3]},
            ]
        ]
        * 2,
        "the real kernel knows no int32",
    ),
    "gradient of Broadcast": (
        {"dtype": "Float32", "shape": [2, 3], "elements": [[0, 0, 0], [0, 0, 0]]},
        {"dtype": "Float32", "shape": [2, 3], "elements": [[14, 14, 14], [14, 14, 14]]},
        "the root's tensor is in every rank's loss, the others' in none; MindSpore leaves each rank its own gradient",
    ),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """Start the ranks and MindSpore's scheduler, and return what each rank found for each call."""
    folder = tmp_path_factory.mktemp("ranks")
    here = Path(__file__).parent
    port, ours = free_ports(2)
    common = {
        **os.environ,
        "MS_WORKER_NUM": str(RANKS),
        "MS_SCHED_HOST": "127.0.0.1",
        "MS_SCHED_PORT": str(port),
        "RANK_SIZE": str(RANKS),
        "PYTHONPATH": os.pathsep.join([str(here.parents[3]), str(here)]),
    }
    roles = [{"MS_ROLE": "MS_SCHED", "RANK_ID": "0"}]
    roles += [{"MS_ROLE": "MS_WORKER", "MS_NODE_ID": str(rank), "RANK_ID": str(rank)} for rank in range(RANKS)]
    command = [sys.executable, str(here / "real_and_ours.py"), f"tcp://127.0.0.1:{ours}"]
    processes = []
    for place, role in enumerate(roles):
        with (folder / f"process{place}.txt").open("w") as printed:
            processes.append(
                subprocess.Popen(command, cwd=folder, env={**common, **role}, stdout=printed, stderr=printed)
            )
    try:
        for place, process in enumerate(processes[1:], 1):
            assert process.wait(timeout=150) == 0, (folder / f"process{place}.txt").read_text()
        yield [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(RANKS)]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.differential("mindspore", calls=1)
@pytest.mark.parametrize("name", [name for name in CALLS if name not in INTENDED])
def test_ours_does_what_the_real_one_does(outcomes: list[dict[str, Any]], name: str) -> None:
    for found in outcomes:
        assert_same(found[name]["real"], found[name]["ours"], RAISES.get(name))


@pytest.mark.differential("mindspore", calls=1)
@pytest.mark.parametrize("name", INTENDED)
def test_ours_does_more(outcomes: list[dict[str, Any]], name: str) -> None:
    for found, intended in zip(outcomes, INTENDED[name][:RANKS], strict=True):
        real, ours = found[name]["real"], found[name]["ours"]
        assert ours == {"returned": intended}, INTENDED[name][-1]
        if name in RAISES:
            assert_raised(real, RAISES[name])
        else:
            assert "returned" in real, real
            assert real != ours, "no difference any more"
