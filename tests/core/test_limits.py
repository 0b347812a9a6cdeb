"""Ranks that have too little of something, or become something else: an error on every rank, and what is left goes on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import limited_ranks
import pytest

from shim.launch.pool import RankPool

pytestmark = pytest.mark.engine("shared_memory")  # the others do not look for that


@pytest.fixture(scope="module")
def ranks() -> Iterator[RankPool]:
    with RankPool(2) as pool:
        yield pool


@pytest.mark.parametrize("limited", [0, 1])
@pytest.mark.parametrize(("left", "is_made"), [(0, False), (11, False), (12, True)])
def test_descriptors_are_looked_for_before_a_group_is_made(
    ranks: RankPool, limited: int, left: int, is_made: bool
) -> None:
    outcomes = ranks.run(limited_ranks.make_a_group_with_descriptors_left, limited, left, True)
    assert [outcome.error for outcome in outcomes] == [None, None]
    raised, sums, grown = zip(*(outcome.value for outcome in outcomes), strict=True)
    assert (sums, grown) == ((2.0, 2.0), (0, 0))
    assert raised == ("", "") or not is_made
    for told in () if is_made else raised:
        assert f"rank {limited}" in told
        assert "cannot open the 12 files that making a group of 2 takes: Too many open files" in told


@pytest.mark.parametrize("limited", [0, 1])
@pytest.mark.parametrize("left", range(1, 12))
def test_descriptors_run_out_while_ranks_meet(ranks: RankPool, limited: int, left: int) -> None:
    outcomes = ranks.run(limited_ranks.make_a_group_with_descriptors_left, limited, left, False, deadline=15)
    assert [outcome.error for outcome in outcomes] == [None, None]
    raised, sums, grown = zip(*(outcome.value for outcome in outcomes), strict=True)
    assert (sums, grown) == ((2.0, 2.0), (0, 0))
    assert all(raised) or not any(raised), raised
    assert all(raised) or left > 1
    assert not any(raised) or left < 8, raised


@pytest.mark.parametrize("left", [0, 1 << 20, 64 << 20])
def test_memory_runs_out_where_a_group_is_made(ranks: RankPool, left: int) -> None:
    outcomes = ranks.run(limited_ranks.make_a_group_with_memory_left, left)
    assert [outcome.error for outcome in outcomes] == [None, None]
    raised, sums = zip(*(outcome.value for outcome in outcomes), strict=True)
    assert sums == (2.0, 2.0)
    assert all(raised) or not any(raised), raised
    assert left > 0 or all(raised)


@pytest.mark.parametrize("is_kept", [True, False], ids=["at once", "one by one"])
def test_groups_keep_no_descriptors(ranks: RankPool, is_kept: bool) -> None:
    outcomes = ranks.run(limited_ranks.make_many_groups, 60, is_kept)
    assert [outcome.error for outcome in outcomes] == [None, None]
    assert [outcome.value for outcome in outcomes] == [(240.0 if is_kept else 120.0, 0)] * 2


@pytest.mark.engine("shared_memory")
def test_a_rank_without_memory_for_its_ring_is_told_on_all_and_the_group_goes_on(ranks: RankPool) -> None:
    outcomes = ranks.run(limited_ranks.call_without_memory_for_a_ring)
    assert [outcome.error for outcome in outcomes] == [None, None]
    for raised, is_left_alone, sum_afterwards in (outcome.value for outcome in outcomes):
        assert raised.startswith("OutOfMemoryError: ")
        assert f"could not be reserved on rank {limited_ranks.LIMITED}" in raised
        assert (is_left_alone, sum_afterwards) == (True, 2.0)


def test_a_group_lies_in_no_file_system(ranks: RankPool) -> None:
    """So that the size of /dev/shm, or that there is none, makes no difference."""
    outcomes = ranks.run(limited_ranks.files_of_a_world)
    assert [(outcome.value, outcome.error) for outcome in outcomes] == [([], None)] * 2


def test_a_forked_child_is_no_rank(ranks: RankPool) -> None:
    outcomes = ranks.run(limited_ranks.call_in_a_forked_child)
    assert [(outcome.value, outcome.error) for outcome in outcomes] == [((3, 2.0), None)] * 2


def test_threads_call_one_group_at_once(ranks: RankPool) -> None:
    outcomes = ranks.run(limited_ranks.call_in_threads, 4, 50)
    assert [(outcome.value, outcome.error) for outcome in outcomes] == [([3.0] * 200, None)] * 2


@pytest.mark.parametrize(
    ("does", "told"),
    [
        (
            "os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(2)'])",
            "os.exec: its process runs another",
        ),
        ("calls.barrier(Caller('test'), world).start(); sys.exit(0)", "rank 1 left the group"),
        ("calls.receive(Caller('test'), world, numpy.ones(3), 0).start(); sys.exit(0)", "rank 1 left the group"),
    ],
    ids=["execv", "a collective under way", "a receive under way"],
)
def test_a_program_that_ends_itself_is_told(ranks: RankPool, does: str, told: str) -> None:
    lost, ended = ranks.run(limited_ranks.lose_a_rank_that, does)
    assert (lost.error, ended.error, ended.value) == (None, None, "0")
    assert told in lost.value


@pytest.mark.parametrize("way", ["execv", "execvp"])
def test_a_program_that_cannot_be_run_changes_nothing(ranks: RankPool, way: str) -> None:
    outcomes = ranks.run(limited_ranks.fail_to_become_another_program, way)
    assert [(outcome.value, outcome.error) for outcome in outcomes] == [(2.0, None)] * 2


def test_a_subinterpreter_is_refused() -> None:
    program = """
import sys
if sys.version_info < (3, 13):
    import _xxsubinterpreters as interpreters
else:
    import _interpreters as interpreters
interpreters.run_string(interpreters.create(), '''
try:
    import shim._native
except ImportError as error:
    print(error)
''')
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "interpreter" in ended.stdout  # Python's own refusal may come first
