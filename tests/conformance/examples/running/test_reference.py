"""Examples on the framework itself: how each ends, with made-up ones on two ranks of torch."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from pathlib import Path

import pytest

from shim.conformance.examples.adapting import WHY_A_FOLDER, WHY_A_PORT
from shim.conformance.examples.example import Example
from shim.conformance.examples.judging import Verdict, verdict_of_run
from shim.conformance.examples.reading.reader import examples_in
from shim.conformance.examples.running import reference
from shim.conformance.examples.running.reference import run_reference
from shim.conformance.examples.running.runner import Outcome

pytestmark = pytest.mark.frameworks

STORE = """
>>> store = dist.{store}
>>> store.add("ranks", 1) <= 2
True # Rank 0
True # Rank 1
"""
TEXTS = {
    "well": ">>> x = torch.ones(2)\n>>> dist.all_reduce(x)\n>>> x\ntensor([2., 2.]) # Rank 0\ntensor([2., 2.]) # Rank 1\n",
    "with an error": ">>> x = torch.ones(2) * rank\n>>> y = torch.ones(2, 2)\n>>> dist.all_gather_single(y, x)\n",
    "showing something else": ">>> dist.get_rank()\n0\n>>> # Rank 0 and Rank 1\n",
    "dead": ">>> import os\n>>> if rank == 1:\n>>>     os.abort()\n>>> dist.barrier()\n",
    "late": ">>> import time\n>>> if rank == 1:\n>>>     time.sleep(1000)\n",
    "at a file": STORE.format(store='FileStore("/tmp/filestore", 2)'),
    "at the same file": STORE.format(store='FileStore("/tmp/filestore", 2)'),
    "at a port": ">>> import os" + STORE.format(store='TCPStore("127.0.0.1", 1234, 2, os.environ["RANK"] == "0")'),
}  # fmt: skip
ENDS = {
    "well": (Verdict.PASS, ""),
    "with an error": (Verdict.UNSUPPORTED, "invalid tensor size at index 0 (expected (2), got (1, 2))"),
    "showing something else": (Verdict.FAIL, "shown 0, seen 1"),
    "dead": (Verdict.CRASHES, "rank 1 died: killed by SIGABRT"),
    "late": (Verdict.HANGS, "had not answered after"),
    "at a file": (Verdict.PASS, ""),
    "at the same file": (Verdict.PASS, ""),
    "at a port": (Verdict.PASS, ""),
}


def example_of(how: str) -> Example:
    (example,) = examples_in(TEXTS[how], "torch", f"torch.distributed.{how}", "a test")
    assert example.ranks == 2
    return example


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for temporary files, as the run leaves it."""
    return tmp_path_factory.mktemp("temporary")


ENTRIES = {
    "torch": ">>> dist.get_rank()\n",
    "paddle": ">>> import paddle.distributed as dist\n>>> dist.init_parallel_env()\n>>> dist.get_rank()\n",
    "mindspore": ">>> from mindspore.communication import get_rank, init\n>>> init()\n>>> get_rank()\n",
}


@pytest.mark.parametrize("framework", ENTRIES)
def test_the_ranks_of_each_framework_find_each_other_and_no_process_stays(framework: str) -> None:
    before = processes_of_this_group()
    text = f"{ENTRIES[framework]}0 # Rank 0\n1 # Rank 1\n"
    (example,) = examples_in(text, framework, f"{framework}.entry", "a test")
    (outcome,) = run_reference([example])
    assert outcome.failures == ()
    until = time.monotonic() + 10
    while (left := processes_of_this_group() - before) and time.monotonic() < until:
        time.sleep(0.05)  # the kernel ends them with the ranks
    assert left == set()


def processes_of_this_group() -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(ValueError, ProcessLookupError):
            if os.getpgid(int(entry.name)) == os.getpgid(0):
                found.add(int(entry.name))
    return found


@pytest.fixture(scope="module")
def outcomes(left: Path) -> dict[str, Outcome]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(left))
        patch.setattr(reference, "_DEADLINE", 15.0)
        seen = run_reference([example_of(how) for how in TEXTS])
    return dict(zip(TEXTS, seen, strict=True))


@pytest.mark.parametrize("how", TEXTS)
def test_an_example_ends(outcomes: dict[str, Outcome], how: str) -> None:
    judgement = verdict_of_run(outcomes[how])
    verdict, reason = ENDS[how]
    assert judgement.verdict is verdict, outcomes[how].failures
    assert reason in judgement.reason


def test_places_of_its_own_are_told(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["at a file"].changes == (WHY_A_FOLDER,)
    assert outcomes["at a port"].changes == (WHY_A_PORT,)
    assert outcomes["at a file"].example == example_of("at a file")


def test_nothing_is_left_behind_also_by_ranks_that_were_killed(outcomes: dict[str, Outcome], left: Path) -> None:
    assert outcomes["late"].failures
    assert list(left.iterdir()) == []
