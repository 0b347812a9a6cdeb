"""Threads that help with large operations, where the user's environment asks for them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import helped_ranks
import pytest

from shim.core.helper_threads import chosen_helper_threads
from shim.core.variables import Variables
from shim.errors import ArgumentError
from shim.launch.pool import RankPool

ALONE = """
import os, sys, threading
import numpy as np
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp

def threads():
    return len(os.listdir("/proc/self/task"))

def reduce_large(world):
    tensor = np.arange(1_000_003.0)
    calls.all_reduce(me, world, tensor, tensor, ReduceOp.SUM).wait()
    assert (tensor == np.arange(1_000_003.0)).all()

me = Caller("test")
world = groups.enter_world(me, "test")
before = threads()
reduce_large(world)
assert threads() == before + 3, threads()
"""

FORKED = """
child = os.fork()
if child == 0:
    assert threads() == 1
    os.environ["SHIM_JOB"] += " child"
    groups.close_group(world)
    world = groups.enter_world(me, "test")
    before = threads()
    reduce_large(world)
    os._exit(threads() - before)
reduce_large(world)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
"""

BUSY = """
def reduce_on():
    while True:
        reduce_large(world)

threading.Thread(target=reduce_on, daemon=True).start()
for _ in range(3):
    reduce_large(world)
print("done", flush=True)
"""

ENDINGS = {
    "returns": "",
    "raises": "sys.exit(0)",
    "exits": "os._exit(0)",
    "becomes another": "os.execv(sys.executable, [sys.executable, '-c', ''])",
}


def run_alone(program: str, helpers: str = "3") -> subprocess.CompletedProcess[str]:
    alone = {"SHIM_RANK": "0", "SHIM_WORLD_SIZE": "1", "SHIM_JOB": f"helpers {os.getpid()}"}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | alone | {"SHIM_HELPER_THREADS": helpers},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture(scope="module", params=[2, 3])
def pool(request: pytest.FixtureRequest) -> Iterator[RankPool]:
    with RankPool(request.param) as pool:
        yield pool


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bfloat16"])
def test_ranks_with_and_without_helpers_agree_with_the_oracle(pool: RankPool, dtype: str) -> None:
    outcomes = pool.run(helped_ranks.run, dtype, deadline=60.0)
    for outcome in outcomes:
        assert outcome.error is None, f"rank {outcome.rank}: {outcome.error}"


def test_only_ranks_that_were_asked_have_helpers() -> None:
    with RankPool(2) as pool:
        with_helpers, without = pool.run(helped_ranks.run, "float32", deadline=60.0)
    assert (with_helpers.error, without.error) == (None, None)
    assert with_helpers.value == without.value + 2


@pytest.mark.parametrize(
    ("value", "count"), [(None, 0), ("", 0), ("0", 0), ("2", 2), ("64", 64)], ids=lambda value: str(value)
)
def test_the_environment_says_how_many(value: str | None, count: int) -> None:
    assert chosen_helper_threads(Variables({} if value is None else {"SHIM_HELPER_THREADS": value})) == count


@pytest.mark.parametrize("value", ["65", "-1", "two", "1.5", "٣", " ", "9" * 5000])
def test_another_value_is_refused(value: str) -> None:
    with pytest.raises(ArgumentError, match="SHIM_HELPER_THREADS must be a whole number from 0 to 64, got "):
        chosen_helper_threads(Variables({"SHIM_HELPER_THREADS": value}))


def test_another_value_is_refused_where_the_world_begins() -> None:
    result = run_alone(ALONE, "many")
    assert result.returncode == 1
    assert "SHIM_HELPER_THREADS must be a whole number from 0 to 64, got 'many'" in result.stderr


def test_a_forked_child_has_helpers_of_its_own() -> None:
    result = run_alone(ALONE + FORKED)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("ending", ENDINGS)
def test_helpers_do_not_keep_a_process_from_ending(ending: str) -> None:
    result = run_alone(ALONE + BUSY + ENDINGS[ending])
    assert result.returncode == 0, result.stderr
    assert result.stdout == "done\n"
