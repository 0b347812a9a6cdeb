"""Helpers, one of each rank of a job, form a world of their own, whatever started them and wherever they meet."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from shim.core.job import outer_job as module
from shim.core.job.origin import Origin, origin_of_this_process
from shim.core.job.outer_job import outer_job

PROGRAM = Path(__file__).with_name("helpers_of_ranks.py")
AT_ONCE = 4.0  # seconds; a rank with a proof leaves others alone for five


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(
    size: int,
    way: str,
    place: str,
    *,
    depth: int = 1,
    port: int | None = None,
    timeout: float = 30,
    names: Sequence[str] = (),
) -> tuple[list[tuple[object, float]], list[str]]:
    """Return what the helper of each rank of a job answers, with the seconds that it took, and what the ranks write to stderr."""
    port = free_port() if port is None else port
    words = [str(one) for one in (size, port, way, depth, place, timeout)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHIM_")}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(rank), *words],
            env=environment | {"PYTHONPATH": str(PROGRAM.parent)} | ({"SHIM_JOB_NAME": names[rank]} if names else {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        said = [json.loads(rank.stdout.readline() or "[null, 0]") for rank in ranks if rank.stdout]
        return [tuple(one) for one in said], [rank.communicate(timeout=300)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()


def place_of(kind: str, folder: Path) -> str:
    port = free_port()
    return {"file": f"file://{folder}/meeting", "tcp": f"tcp://localhost:{port}"}.get(kind, f"{kind} {port}")


@pytest.mark.parametrize(
    ("way", "place", "depth", "size"),
    [
        ("spawn", "store", 1, 2),
        ("fork", "store", 1, 3),
        ("forkserver", "env", 1, 2),
        ("os.fork", "file", 2, 2),
        ("program", "tcp", 1, 2),
        ("spawn", "env", 2, 2),
        *(
            pytest.param(*one, marks=pytest.mark.nightly)
            for one in (
                ("fork", "env", 1, 2),
                ("forkserver", "store", 2, 2),
                ("program", "store", 2, 2),
                ("spawn", "file", 1, 4),
            )
        ),
    ],
)
def test_helpers_of_all_ranks_meet(way: str, place: str, depth: int, size: int, tmp_path: Path) -> None:
    said, written = answers(size, way, place_of(place, tmp_path), depth=depth)
    assert [one for one, _ in said] == [list(range(size))] * size, written
    assert max(seconds for _, seconds in said) < AT_ONCE
    assert written == [""] * size


@pytest.mark.parametrize("place", ["store", "file"])
def test_helpers_of_ranks_that_know_nothing_of_each_other_are_told(place: str, tmp_path: Path) -> None:
    said, written = answers(2, "spawn", place_of(place, tmp_path), port=0, timeout=4)
    assert {str(one)[-200:].partition("\n")[2] for one, _ in said} != {""}
    for (one, seconds), text in zip(said, written, strict=True):
        assert "is rank 0 of one job" in str(one)
        assert "waits in vain for its own\nWhere the two are of one job, set SHIM_JOB_NAME" in str(one)
        assert seconds < AT_ONCE
        assert "of another job: process" in text
    assert "found rank 1 of another job" in written[0]
    assert "found rank 0 of another job" in written[1]


@pytest.mark.parametrize("place", ["store", "file"])
def test_a_name_brings_helpers_together_that_know_nothing_of_each_other(place: str, tmp_path: Path) -> None:
    said, written = answers(2, "spawn", place_of(place, tmp_path), port=0, names=["ours", "ours"])
    assert [one for one, _ in said] == [[0, 1]] * 2, written


def test_other_names_at_a_store_are_of_other_jobs() -> None:
    said, written = answers(2, "spawn", f"store {free_port()}", port=0, timeout=4, names=["ours", "theirs"])
    assert all("waits in vain" in str(one) for one, _ in said)
    assert all("of another job" in text for text in written)


TOLD = {
    "torchrun": {"TORCHELASTIC_RUN_ID": "none", "RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "29500"},
    "shim run": {"SHIM_RANK": "1", "SHIM_WORLD_SIZE": "2", "SHIM_JOB": "5eed"},
    "Open MPI": {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "prterun-1"},
    "srun": {"SLURM_STEP_ID": "0", "SLURM_JOB_ID": "7", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"},
    "": {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"},  # another job may say so
}


@pytest.mark.parametrize("launcher", TOLD)
@pytest.mark.parametrize("size", ["2", "1"])
def test_a_launchers_name_is_that_of_the_outer_job(launcher: str, size: str) -> None:
    """What the helper is told itself does not hide it. A launcher of one process may have started anything below that."""
    told = {name: size if value == "2" else value for name, value in TOLD[launcher].items()}
    program = "import os; os.environ.clear(); from shim.core.job.outer_job import outer_job; print(outer_job())"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SHIM_", "SLURM_"))}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment | told, capture_output=True, text=True, timeout=300, check=True
    )
    assert ended.stdout.strip().startswith(launcher if size == "2" else "")
    assert bool(ended.stdout.strip()) is bool(launcher and size == "2")


@pytest.mark.ranks(1, 2)
def test_ranks_have_their_world_for_an_outer_job(rank: int, world_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from shim.core import groups, objects
    from shim.core.callers import Caller

    monkeypatch.setattr(module, "_name_of_run", lambda: "")
    me = Caller("test", input="item")
    world = groups.enter_world(me, "test")
    found = outer_job()
    assert objects.all_gather(me, world, found) == [found] * world_size
    assert found.startswith("world") is (world_size > 1)


def _answer(answer: object, size: int, outer: str) -> None:
    answer.send(origin_of_this_process(0, size, lambda environment: None, outer))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("size", "outer", "is_proven"),
    [
        (2, "", True),  # the parent may be the other rank
        (1000, "one", False),  # whatever else this process has started
        (1, "one", True),
    ],
)
def test_a_helper_alone_is_no_job_of_its_parents(size: int, outer: str, is_proven: bool) -> None:
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    helper = context.Process(target=_answer, args=(writer, size, outer))
    helper.start()
    found: Origin = reader.recv()
    helper.join()
    assert (found.is_proven, found.outer_job) == (is_proven, outer)
