"""MindSpore 2.10 on a CPU and the frontend do the same on every rank, or what is told here.

Both are used by the same three processes, which are started as MindSpore's own launcher starts them.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mindspore_comparison import assert_raised, assert_same
from real_mindspore_mistakes import CASES, DIFFERENT, RAISES

from shim.conformance.examples.adapting import free_ports

RANKS = 3
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each rank saw of each case: MindSpore's outcome and ours."""
    folder = tmp_path_factory.mktemp("ranks")
    _run_ranks(folder)
    missing = [rank for rank in range(RANKS) if not (folder / f"{rank}.json").exists()]
    if missing:
        pytest.fail("\n".join((folder / f"log{rank + 1}").read_text()[-3000:] for rank in missing))
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(RANKS)]


def _run_ranks(folder: Path) -> None:
    """Run the cases on all ranks, each of which leaves a file with what it saw."""
    port, ours = free_ports(2)
    common = {
        **os.environ,
        "PYTHONPATH": str(HERE.parents[3]),
        "MS_WORKER_NUM": str(RANKS),
        "MS_SCHED_HOST": "127.0.0.1",
        "MS_SCHED_PORT": str(port),
    }
    roles = [{"MS_ROLE": "MS_SCHED"}]
    roles += [{"MS_ROLE": "MS_WORKER", "MS_NODE_ID": str(rank), "RANK_ID": str(rank)} for rank in range(RANKS)]
    command = [sys.executable, str(HERE / "real_mindspore_rank.py"), str(folder), str(ours)]
    with contextlib.ExitStack() as stack:
        logs = [stack.enter_context((folder / f"log{number}").open("w")) for number in range(len(roles))]
        processes = [
            subprocess.Popen(command, env={**common, **role}, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
            for role, log in zip(roles, logs, strict=True)
        ]
        for process in processes:
            stack.callback(process.wait)
            stack.callback(process.kill)
        for process in processes[1:]:
            process.wait(timeout=280)


@pytest.mark.differential("mindspore", calls=1)
@pytest.mark.parametrize("name", CASES)
def test_both_do_the_same(outcomes: list[dict[str, Any]], name: str) -> None:
    for rank in range(RANKS):
        theirs, ours = outcomes[rank][name]
        if name in DIFFERENT:
            instead, _ = DIFFERENT[name]
            assert_raised(theirs, RAISES[name])
            assert instead in ours.get("raised", ["returns"]), (rank, theirs, ours)
            assert instead not in theirs["raised"], "no longer different"
        else:
            assert_same(theirs, ours, RAISES.get(name))


RETURNED = {"returned": ["list", ["Float32", [2], [1.0, 2.0]]]}
RAISED = {"raised": ["TypeError", "Exception"], "said": "must be a tensor", "where": "comm_func.py"}


@pytest.mark.parametrize(
    ("theirs", "ours", "raises"),
    [
        (RETURNED, {"returned": ["list", ["Float32", [2], [1.0, 3.0]]]}, None),
        (RETURNED, {"returned": ["list", ["Float16", [2], [1.0, 2.0]]]}, None),
        (RETURNED, {"returned": ["list", ["Float32", [2, 1], [1.0, 2.0]]]}, None),
        (RETURNED, RAISED, None),
        (RAISED, RAISED, None),
        (RAISED, RETURNED, "TypeError"),
        (RETURNED, RAISED, "TypeError"),
        (RAISED, {**RAISED, "raised": ["ValueError", "Exception"]}, "TypeError"),
        ({**RAISED, "raised": ["AttributeError", "Exception"]}, RAISED, "TypeError"),
        ({**RAISED, "where": "real_mindspore_mistakes.py"}, RAISED, "TypeError"),
    ],
)
def test_differences_are_seen(theirs: Any, ours: Any, raises: str | None) -> None:
    assert_same(RETURNED, RETURNED, None)
    assert_same(RAISED, {**RAISED, "raised": ["ArgumentTypeError", "TypeError"], "said": "other words"}, "TypeError")
    with pytest.raises(AssertionError):
        assert_same(theirs, ours, raises)
