"""Everyone who is measured can be: opened on two ranks, with one small case. A peer that does not start would be missed by nobody."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shim.bench.cases import COLLECTIVES, DTYPES, SIZES, Case, size_text
from shim.bench.machine import processors
from shim.bench.plan import CONTENDERS
from shim.bench.ranks.rank_set import RankSet
from shim.bench.ranks.turn import Turn
from shim.bench.run import present

FOLDERS = {"mpich": Path(os.environ["SHIM_TEST_MPICH"])} if "SHIM_TEST_MPICH" in os.environ else {}
# An environment has one MPI, which is Open MPI: MPICH is tried where its folder is given.
TRIED = [name for name, contender in CONTENDERS.items() if contender.mpi != "mpich" or "mpich" in FOLDERS]
OFTEN = ("engine", "torch", "gloo")  # with each change; the others start in much the same ways


@pytest.mark.parametrize(
    "name", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.nightly) for name in TRIED]
)
def test_whoever_is_installed_starts_and_calculates_rightly(name: str) -> None:
    there, absent = present([CONTENDERS[name]], FOLDERS)
    assert absent == {}
    ranks = RankSet(CONTENDERS[name], 2, processors(), there[CONTENDERS[name]])
    try:
        assert ranks.versions
        answers = ranks.ask(Turn(Case("all_reduce", 2, "float32", 64), 3, 1, check=True, calls=2), 60)
        assert [(one.cannot, one.error, len(one.seconds)) for one in answers] == [(None, None, 3)] * 2
        assert all(seconds > 0 for one in answers for seconds in one.seconds)
    finally:
        ranks.close()


@pytest.mark.nightly
def test_gloo_tuned_is_bound_where_there_are_processors_enough() -> None:
    bound = []
    for usable in (2, 1):
        ranks = RankSet(CONTENDERS["gloo-tuned"], 2, usable)
        bound.append([os.sched_getaffinity(pid) for pid in ranks.pids])
        threads = [
            {
                os.sched_getaffinity(int(task.name)) == os.sched_getaffinity(pid)
                for task in Path(f"/proc/{pid}/task").iterdir()
            }
            for pid in ranks.pids
        ]
        ranks.close()
        assert threads == [{True}] * 2
    everywhere = os.sched_getaffinity(0)
    assert sorted(map(len, bound[0])) == [1, 1]
    assert bound[0][0] != bound[0][1] or len(everywhere) == 1
    assert bound[1] == [everywhere] * 2


RANKS = (2, 3, 4, 7, 8)


def test_sizes_go_from_8_bytes_to_256_megabytes() -> None:
    assert (SIZES[0], SIZES[-1]) == (8, 256 << 20)
    assert {64 << 10, 1 << 20, 16 << 20}.issubset(SIZES)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_size_can_be_shared_out(collective: str, dtype: str, ranks: int) -> None:
    for size in (8, 64, 4096):
        case = Case(collective, ranks, dtype, size)
        assert case.bytes in range(0 if collective == "barrier" else size, size + ranks * DTYPES[dtype])
        assert len(case.parts) == ranks
        assert 1 <= case.batch <= 32
        if collective in ("reduce_scatter", "all_to_all"):
            assert case.count % ranks == 0
        if collective == "reduce_scatter":
            assert case.output_count(0) * ranks == case.count
        if collective in ("all_gather", "all_gather_unequal"):
            assert case.output_count(0) == sum(case.parts) == case.count * ranks


def test_unequal_parts_differ_and_their_mean_is_the_size() -> None:
    parts = Case("all_gather_unequal", 4, "float32", 4096).parts
    assert sorted(set(parts)) == parts
    assert sum(parts) == 4 * 1024


def test_small_calls_are_timed_in_batches_and_large_ones_alone() -> None:
    assert Case("all_reduce", 2, "float32", 8).batch == 32
    assert Case("all_reduce", 2, "float32", 16 << 20).batch == 1


@pytest.mark.parametrize(("size", "text"), [(8, "8 B"), (4096, "4 KB"), (16 << 20, "16 MB"), (1536, "1.5 KB")])
def test_sizes_are_written_as_one_does(size: int, text: str) -> None:
    assert size_text(size) == text
