"""Jobs that were given one port, file or store keep apart, and a rank that meets another job's is told."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from jobs_at_one_port import ME, WAYS, answer_of, count_outcomes, program_of

from shim.core import groups
from shim.core.job.origin import NO_ORIGIN, Origin, origin_of_this_process
from shim.core.job.rendezvous import locate
from shim.core.job.stores import HashStore
from shim.errors import StateError

PROGRAM = Path(__file__).with_name("jobs_at_one_port.py")
A, B = Origin("11.1", "10.1", is_proven=True), Origin("21.1", "20.1", is_proven=True)


@pytest.mark.parametrize("way", WAYS)
def test_two_jobs_that_begin_at_once_keep_apart(way: str) -> None:
    assert count_outcomes(2, 2, 2, way) == {"apart": 4}


@pytest.mark.parametrize(
    ("way", "place"),
    [
        ("fork", "env"),
        *(
            pytest.param(*one, marks=pytest.mark.nightly)
            for one in (("parent", "tcp"), ("os.fork", "file"), ("fork", "store"))
        ),
    ],
)
def test_three_jobs_that_begin_at_once_keep_apart(way: str, place: str) -> None:
    assert count_outcomes(3, 3, 3, way, place) == {"apart": 9}


def test_a_job_that_fails_is_an_error_and_leaves_nothing_behind() -> None:
    with program_of("job", 2, "no way") as program:
        print("env 1", file=program.stdin, flush=True)
        with pytest.raises(EOFError, match="ended without an answer"):
            answer_of(program)
    with pytest.raises(ProcessLookupError):
        os.killpg(program.pid, 0)


def rank_of(parent: str, rank: int, place: str, timeout: float, name: str = "") -> subprocess.Popen[str]:
    """Start a rank that takes itself for a child of *parent*, which has proof of it where that is not empty."""
    program = f"""
import os
from shim.core.job import origin
from shim.core.job import rendezvous
parent = {parent!r}
original = rendezvous.origin_of_this_process
rendezvous.origin_of_this_process = lambda *which: (
    origin.Origin(f"{{os.getpid()}}.1", f"{{parent}}.1", True) if parent else original(*which)
)
import jobs_at_one_port as jobs
jobs.TIMEOUT = {timeout}
print(jobs.be_rank({parent or "none"!r}, {rank}, 2, {place!r}))
"""
    environment = os.environ | {"PYTHONPATH": str(PROGRAM.parent), "SHIM_JOB_NAME": name}
    return subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_ranks_with_proof_of_two_jobs_are_told_and_do_not_meet(tmp_path: Path) -> None:
    ranks = [rank_of(parent, rank, f"file://{tmp_path}/meeting", 4) for rank, parent in enumerate(["100", "200"])]
    (said_0, warned_0), (said_1, warned_1) = (rank.communicate(timeout=300) for rank in ranks)
    assert f"found rank 1 of another job: process {ranks[1].pid}, which process 200 started" in warned_0
    assert f"found rank 0 of another job: process {ranks[0].pid}, which process 100 started" in warned_1
    for said in (said_0, said_1):
        assert f"process {ranks[0].pid}, which process 100 started, is rank 0 of one job" in said
        assert f"process {ranks[1].pid}, which process 200 started, is rank 1 of another one" in said
    for text in (said_0, warned_0, said_1, warned_1):
        assert "set SHIM_JOB_NAME to the same name on all ranks" in text


def test_a_name_of_the_job_brings_them_together(tmp_path: Path) -> None:
    place = f"file://{tmp_path}/meeting"
    ranks = [rank_of(parent, rank, place, 60, "ours") for rank, parent in enumerate(["100", "200"])]
    assert [rank.communicate(timeout=300)[0] for rank in ranks] == ["met: 100 200\n"] * 2


@pytest.mark.parametrize("parents", [("", "200"), ("100", "")])
def test_a_rank_without_proof_meets_one_that_has_some(parents: tuple[str, str], tmp_path: Path) -> None:
    place = f"file://{tmp_path}/meeting"
    ranks = [rank_of(parent, rank, place, 3) for rank, parent in enumerate(parents)]
    met = " ".join(sorted(parent or "none" for parent in parents))
    assert [rank.communicate(timeout=300)[0] for rank in ranks] == [f"met: {met}\n"] * 2


@pytest.mark.parametrize(
    ("other", "is_of_another_job"),
    [
        (B, True),
        (Origin("12.1", "10.1", is_proven=True), False),  # a sibling
        (Origin("10.1", "1.1", is_proven=True), False),  # the parent
        (Origin("12.1", "11.1", is_proven=True), False),  # a child
        (Origin("21.1", "20.1"), False),  # no proof
        (Origin("21.1", "20.1", may_have_started_others=True), True),
        (Origin("11.2", "10.2", is_proven=True), True),  # of another pid namespace
        (Origin("21.1", "20.1", is_proven=True, outer_job="run 1"), True),
        (NO_ORIGIN, False),
    ],
)
def test_who_is_of_another_job(other: Origin, is_of_another_job: bool) -> None:
    assert A.is_of_another_job(other) is other.is_of_another_job(A) is is_of_another_job


@pytest.mark.parametrize(("theirs", "is_of_another_job"), [("run 1", False), ("run 2", True)])
def test_ranks_below_one_job_are_of_one(theirs: str, is_of_another_job: bool) -> None:
    mine = replace(A, outer_job="run 1")
    assert mine.is_of_another_job(replace(B, outer_job=theirs)) is is_of_another_job


def test_what_rank_0_has_started_is_no_proof_before_it_comes() -> None:
    assert not origin_of_this_process(0, 2, lambda environment: None).may_have_started_others
    child = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    child.start()
    try:
        found = [
            origin_of_this_process(rank, size, lambda environment: None) for rank, size in [(0, 2), (0, 3), (1, 2)]
        ]
    finally:
        child.kill()
        child.join()
    assert [(one.is_proven, one.may_have_started_others) for one in found] == [
        (False, True),
        (False, False),
        (False, False),
    ]


def test_a_launchers_job_needs_no_proof() -> None:
    shim_run = {"SHIM_RANK": "0", "SHIM_WORLD_SIZE": "2", "SHIM_JOB": "5eed"}
    assert locate(environment=shim_run).origin() is NO_ORIGIN
    by_hand = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    assert locate(environment=by_hand).origin().process.startswith(f"{os.getpid()}.")
    named = locate(environment=by_hand | {"SHIM_JOB_NAME": "mine"})
    assert named.origin() is NO_ORIGIN
    assert named.key != locate(environment=by_hand).key


def test_a_store_leaves_another_jobs_rank_to_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from shim.core.job import rendezvous

    mine = threading.local()
    monkeypatch.setattr(rendezvous, "origin_of_this_process", lambda *which: mine.origin)
    store, names = HashStore(5), {}

    def meet(origin: Origin, rank: int) -> None:
        mine.origin = origin
        names[origin, rank] = rendezvous.locate_at(store, rank, 2).key

    threads = [threading.Thread(target=meet, args=which) for which in [(B, 1), (A, 1), (A, 0), (B, 0)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names[A, 0] == names[A, 1] != names[B, 0] == names[B, 1]


def test_a_store_tells_a_rank_that_waits_in_vain_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of two jobs with three ranks each, the first lacks rank 2, and the other one rank 0."""
    from shim.core.job import rendezvous

    mine = threading.local()
    monkeypatch.setattr(rendezvous, "origin_of_this_process", lambda *which: mine.origin)
    store, told = HashStore(2), {}

    def meet(origin: Origin, rank: int) -> None:
        mine.origin = origin
        try:
            rendezvous.locate_at(store, rank, 3)
        except StateError as error:
            told[origin, rank] = str(error)

    threads = [threading.Thread(target=meet, args=which) for which in [(B, 1), (B, 2), (A, 1), (A, 0)]]
    for thread in threads[:2]:
        thread.start()
    for rank in (1, 2):
        store.get(f"shim/rank {rank} of 1")  # they come first
    for thread in threads[2:]:
        thread.start()
    for thread in threads:
        thread.join()
    assert "each waits in vain for its own" in told[A, 0] == told[B, 2]
    assert told[A, 1] == f"rank 0: {told[A, 0]}"
    assert "no other within 2 s" in told[B, 1]
    written = capfd.readouterr().err
    assert written.count("found rank 0 of another job: process 11, which process 10 started") == 2
    assert "found rank 2 of another job: process 21, which process 20 started" in written


def test_a_store_that_cannot_count_says_who_came(monkeypatch: pytest.MonkeyPatch) -> None:
    from shim.core.job import meeting_at_a_store, rendezvous

    guest = meeting_at_a_store._Guest(meeting_at_a_store._this_host(), "answer", "", B.as_tuple())
    table = {"shim/rank 1 of 1": json.dumps(asdict(guest))}
    monkeypatch.setattr(rendezvous, "origin_of_this_process", lambda *which: A)
    store = type("Store", (), {"get": table.__getitem__, "set": table.__setitem__})()
    with pytest.raises(StateError, match="process 21, which process 20 started, is a rank of another one"):
        groups.enter_world(ME, "test", rank=0, world_size=2, store=store)
    assert "process 11, which process 10 started, is rank 0 of one job" in table["answer"]
