"""Everyone who is measured can be: opened on two ranks, with one small case. A peer that does not start would be missed by nobody."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shim.bench.cases import Case
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
