"""Who a process is, from what it is told: every launcher's variables, arguments, URLs, and what is wrong with them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from launcher_variables import (
    Environment,
    assert_raises,
    by_hand,
    find,
    hydra,
    msrun,
    open_mpi,
    paddle,
    paddle_spawn,
    shim_run,
    srun,
    torchrun,
)

from shim.core.job.job import Job
from shim.core.job.rendezvous import locate
from shim.errors import ArgumentError, StateError
from shim.launch.identity import launcher_variables, rank_environment

ROOT = Path(__file__).parents[3]

LAUNCHERS: list[
    tuple[Callable[[int, int], Environment], str, str]
] = [  # environment, name, a variable of the job's name
    (shim_run, "shim run", "SHIM_JOB"),
    (torchrun, "torchrun", "TORCHELASTIC_RUN_ID"),
    (torchrun, "torchrun", "TORCHELASTIC_RESTART_COUNT"),
    (torchrun, "torchrun", "MASTER_PORT"),
    (paddle, "paddle.distributed.launch", "PADDLE_TRAINER_ENDPOINTS"),
    (paddle_spawn, "paddle.distributed.launch", "PADDLE_TRAINER_ENDPOINTS"),
    (msrun, "msrun", "MS_SCHED_PORT"),
    (open_mpi, "Open MPI", "PMIX_NAMESPACE"),
    (hydra, "MPICH or Intel MPI", "MASTER_PORT"),
    (srun, "srun", "SLURM_JOB_ID"),
    (srun, "srun", "SLURM_STEP_ID"),
    (by_hand, "variables set by hand", "MASTER_PORT"),
]


@pytest.mark.parametrize(("launcher", "name", "variable"), LAUNCHERS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_launcher_tells_rank_size_and_job(
    size: int, launcher: Callable[[int, int], Environment], name: str, variable: str
) -> None:
    identities = [find(launcher(rank, size)) for rank in range(size)]
    assert [(me.rank, me.size, me.launcher) for me in identities] == [(rank, size, name) for rank in range(size)]
    if size > 1:
        assert len({me.key for me in identities}) == 1
        another_job = find(launcher(0, size) | {variable: "7" + launcher(0, size)[variable][-3:]})
        assert another_job.key != identities[0].key


def test_the_launchers_names_for_a_job_are_apart() -> None:
    keys = [find(launcher(0, 2)).key for launcher, _, _ in LAUNCHERS]
    assert len(set(keys)) == len({launcher for launcher, _, _ in LAUNCHERS}) - 1  # paddle's launch and spawn agree


def test_a_lone_process_is_a_world_of_its_own() -> None:
    first, second = find({}), find({})
    assert (first.rank, first.size, first.launcher) == (0, 1, "none")
    assert first.key != second.key


def test_the_environment_is_this_process_s_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in shim_run(1, 4).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert (locate().rank, locate().size) == (1, 4)


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    assert find({"RANK": "", "WORLD_SIZE": "", "PADDLE_TRAINER_ID": ""}).launcher == "none"


class TestScheduler:
    def test_the_process_that_is_no_rank_ends_with_status_0(self) -> None:
        with pytest.raises(SystemExit) as ended:
            find(msrun(0, 2) | {"MS_ROLE": "MS_SCHED"})
        assert ended.value.code == 0

    def test_ranks_that_are_started_from_it_are_ranks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in (msrun(0, 2) | {"MS_ROLE": "MS_SCHED"}).items():
            monkeypatch.setenv(name, value)
        assert find(rank_environment(1, 3, "5eed")).launcher == "shim run"


def rank_of_shim_run(rank: int, size: int) -> Environment:
    endpoints = [f"127.0.0.1:{4000 + other}" for other in range(size)]
    return rank_environment(rank, size, "5eed.0") | launcher_variables(rank, size, "5eed", endpoints)


class TestNesting:
    @pytest.mark.parametrize("inner", [torchrun, paddle, msrun])
    @pytest.mark.parametrize("outer", [open_mpi, hydra, srun])
    def test_a_framework_s_launcher_is_inside_mpi_and_slurm(
        self, inner: Callable[[int, int], Environment], outer: Callable[[int, int], Environment]
    ) -> None:
        assert find(outer(0, 1) | inner(2, 3)).launcher == find(inner(2, 3)).launcher

    @pytest.mark.parametrize("outer", [torchrun, paddle, paddle_spawn, msrun, open_mpi, hydra, srun, by_hand])
    def test_shim_run_takes_away_what_is_around_it(
        self, outer: Callable[[int, int], Environment], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in outer(0, 2).items():
            monkeypatch.setenv(name, value)
        me = find(rank_environment(2, 3, "5eed"))
        assert (me.rank, me.size, me.launcher, me.key) == (2, 3, "shim run", find(shim_run(0, 3)).key)

    @pytest.mark.parametrize("inner", [torchrun, paddle, paddle_spawn, msrun, open_mpi, hydra, srun])
    @pytest.mark.parametrize("size", [1, 2])
    def test_a_launcher_beside_shim_run_is_inside_it(self, size: int, inner: Callable[[int, int], Environment]) -> None:
        outer = rank_of_shim_run(0, size)
        assert find(outer | inner(1, 3)).launcher == find(inner(1, 3)).launcher
        assert find(outer | inner(0, size)).launcher == find(inner(0, size)).launcher  # though rank and size agree

    def test_the_frameworks_variables_that_shim_run_sets_are_no_other_launcher_s(self) -> None:
        assert find(rank_of_shim_run(1, 3)) == Job(1, 3, "shim run 5eed.0", "shim run")

    def test_shim_run_inside_shim_run_takes_away_what_the_outer_one_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in rank_of_shim_run(1, 3).items():
            monkeypatch.setenv(name, value)
        assert find(rank_environment(2, 4, "another")) == Job(2, 4, "shim run another", "shim run")
        assert find(rank_of_shim_run(2, 4)).rank == 2

    def test_mpi_is_inside_slurm(self) -> None:
        assert find(srun(0, 1) | open_mpi(1, 2)).launcher == "Open MPI"

    def test_pmi_under_srun_is_slurm_s(self) -> None:
        assert find(srun(1, 2) | {"PMI_RANK": "1", "PMI_SIZE": "2"}).launcher == "srun"

    @pytest.mark.parametrize("outer", [shim_run, open_mpi, srun])
    def test_one_launched_process_may_start_ranks_by_hand(self, outer: Callable[[int, int], Environment]) -> None:
        assert find(outer(0, 1) | by_hand(2, 4)).launcher == "variables set by hand"

    def test_a_lone_rank_of_shim_run_may_start_ranks_by_hand(self) -> None:
        assert find(rank_environment(0, 1, "5eed") | by_hand(2, 4)).launcher == "variables set by hand"

    @pytest.mark.parametrize("launcher", [shim_run, paddle, msrun, open_mpi, srun])
    def test_variables_by_hand_may_repeat_a_launcher_s(self, launcher: Callable[[int, int], Environment]) -> None:
        assert find(launcher(1, 2) | by_hand(1, 2)) == find(launcher(1, 2))

    def test_an_allocation_without_a_step_is_no_launcher(self) -> None:
        assert find({"SLURM_JOB_ID": "42", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}).launcher == "none"

    def test_a_step_counts_its_own_tasks_and_hosts(self) -> None:
        step = srun(0, 8) | {"SLURM_STEP_NUM_TASKS": "1", "SLURM_NNODES": "2", "SLURM_STEP_NUM_NODES": "1"}
        assert find(step).size == 1

    def test_mindspore_s_copies_of_open_mpi_s_variables_do_no_harm(self) -> None:
        copied = {"RANK_ID": "1", "RANK_SIZE": "2", "DEVICE_ID": "1"}
        assert find(open_mpi(1, 2) | copied) == find(open_mpi(1, 2))

    @pytest.mark.parametrize(
        ("environment", "words"),
        [
            (torchrun(0, 2) | paddle(1, 2), ["RANK=0, of torchrun", "PADDLE_TRAINER_ID=1"]),
            (paddle(0, 2) | msrun(0, 3), ["PADDLE_TRAINERS_NUM=2", "MS_WORKER_NUM=3, of msrun"]),
            (shim_run(0, 2) | by_hand(0, 4), ["SHIM_WORLD_SIZE=2, of shim run", "WORLD_SIZE=4"]),
            (open_mpi(0, 2) | hydra(1, 2), ["OMPI_COMM_WORLD_RANK=0, of Open MPI", "PMI_RANK=1"]),
            (open_mpi(1, 2) | by_hand(0, 2), ["OMPI_COMM_WORLD_RANK=1", "RANK=0, of variables set by hand"]),
            (srun(1, 2) | {"WORLD_SIZE": "4"}, ["SLURM_NTASKS=2, of srun", "WORLD_SIZE=4"]),
            (paddle(1, 2) | {"RANK": "0"}, ["PADDLE_TRAINER_ID=1", "RANK=0"]),
        ],
    )
    def test_contradictions_are_named(self, environment: Environment, words: list[str]) -> None:
        assert_raises(StateError, ["contradicts", "\nUnset", *words], environment)


class TestMissing:
    @pytest.mark.parametrize(
        ("environment", "words"),
        [
            ({"RANK": "1"}, ["WORLD_SIZE is not set, while RANK=1", "Set WORLD_SIZE too, or unset RANK"]),
            ({"WORLD_SIZE": "2"}, ["RANK is not set, while WORLD_SIZE=2"]),
            ({"MASTER_PORT": "29500"}, ["RANK is not set, while MASTER_PORT=29500"]),
            ({"RANK": "1", "WORLD_SIZE": "2"}, ["MASTER_PORT is not set", "RANK=1, WORLD_SIZE=2", "shim run"]),
            (
                {"RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "29500"},
                ["MASTER_ADDR is not set, while MASTER_PORT=29500"],
            ),
            ({"SHIM_RANK": "0", "SHIM_WORLD_SIZE": "2"}, ["SHIM_JOB is not set"]),
            ({"SHIM_JOB": "5eed"}, ["SHIM_RANK is not set, while SHIM_JOB=5eed"]),
            ({"TORCHELASTIC_RUN_ID": "none"}, ["RANK is not set, while TORCHELASTIC_RUN_ID=none"]),
            ({"PADDLE_TRAINERS_NUM": "2"}, ["PADDLE_TRAINER_ID is not set, while PADDLE_TRAINERS_NUM=2"]),
            (
                {"PADDLE_TRAINER_ID": "0", "PADDLE_TRAINERS_NUM": "2"},
                ["PADDLE_TRAINER_ENDPOINTS and PADDLE_MASTER are not set"],
            ),
            ({"MS_ROLE": "MS_WORKER", "RANK_ID": "1"}, ["MS_WORKER_NUM is not set"]),
            ({"MS_ROLE": "MS_WORKER", "RANK_ID": "1", "MS_WORKER_NUM": "2"}, ["MS_SCHED_PORT is not set"]),
            ({"RANK_ID": "1", "RANK_SIZE": "2"}, ["RANK_ID=1, RANK_SIZE=2", "MS_ROLE is not set", "msrun"]),
            ({"OMPI_COMM_WORLD_RANK": "0"}, ["OMPI_COMM_WORLD_SIZE is not set"]),
            ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, ["PMIX_NAMESPACE"]),
            ({"MPI_LOCALNRANKS": "2", "PMI_RANK": "0", "PMI_SIZE": "2"}, ["hydra_pmi_proxy", "MASTER_PORT"]),
            ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "0"}, ["SLURM_STEP_NUM_TASKS is not set"]),
            ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, ["SLURM_JOB_ID is not set"]),
        ],
    )
    def test_a_part_of_a_set_is_named(self, environment: Environment, words: list[str]) -> None:
        assert_raises(StateError, words, environment)

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"RANK": "abc"}, ["RANK must be a number", "RANK=abc"]),
            ({"RANK": "-1"}, ["RANK=-1"]),
            ({"RANK": "1.0"}, ["RANK=1.0"]),
            ({"RANK": "²"}, ["RANK=²"]),
            ({"WORLD_SIZE": "two"}, ["WORLD_SIZE=two"]),
            ({"WORLD_SIZE": "0"}, ["at least 1, got 0", "WORLD_SIZE=0"]),
            ({"RANK": "2"}, ["0..1, got 2", "RANK=2, WORLD_SIZE=2"]),
            ({"MASTER_PORT": "0"}, ["MASTER_PORT", "got 0"]),
            ({"MASTER_PORT": "port"}, ["MASTER_PORT", "got port"]),
            ({"MASTER_ADDR": "no-such-host.invalid"}, ["MASTER_ADDR", "no-such-host.invalid"]),
        ],
    )
    def test_wrong_values_are_named(self, changes: Environment, words: list[str]) -> None:
        assert_raises(ArgumentError, words, by_hand(0, 2) | changes)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        (torchrun(0, 4) | {"GROUP_WORLD_SIZE": "2"}, "GROUP_WORLD_SIZE=2"),
        (paddle(0, 4) | {"PADDLE_NNODES": "2"}, "PADDLE_NNODES=2"),
        (paddle_spawn(0, 2) | {"PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:1,10.0.0.2:1"}, "10.0.0.2:1"),
        (msrun(0, 4) | {"MS_SCHED_HOST": "192.0.2.1"}, "192.0.2.1"),
        (open_mpi(0, 4) | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, "OMPI_COMM_WORLD_LOCAL_SIZE=2"),
        (hydra(0, 4) | {"MPI_LOCALNRANKS": "2"}, "MPI_LOCALNRANKS=2"),
        (srun(0, 4) | {"SLURM_NNODES": "2"}, "SLURM_NNODES=2"),
        (srun(0, 4) | {"SLURM_STEP_NUM_NODES": "2"}, "SLURM_STEP_NUM_NODES=2"),
        (by_hand(0, 4) | {"LOCAL_WORLD_SIZE": "2"}, "LOCAL_WORLD_SIZE=2"),
        (by_hand(0, 4) | {"MASTER_ADDR": "192.0.2.1"}, "192.0.2.1"),
    ],
)
def test_what_shows_that_ranks_are_on_several_hosts_is_told(environment: Environment, words: str) -> None:
    job = find(environment)
    assert words in job.several_hosts
    assert job.hosts == ()


def test_paddle_s_endpoints_are_read_from_the_file_they_were_moved_to(tmp_path: Path) -> None:
    moved = paddle(1, 2)
    backup = tmp_path / "variables.json"
    backup.write_text(json.dumps({"PADDLE_TRAINER_ENDPOINTS": moved.pop("PADDLE_TRAINER_ENDPOINTS")}))
    assert find(moved | {"PADDLE_BACKUP_ENV_PATH": str(backup)}).key == find(paddle(0, 2)).key


def test_hydra_s_jobs_are_told_apart_by_the_process_that_starts_their_ranks(tmp_path: Path) -> None:
    proxy = tmp_path / "hydra_pmi_proxy"  # a process has the name of the file it runs
    proxy.symlink_to("/bin/sh")
    program = "from shim.core.job.rendezvous import locate; me = locate(); print(me.rank, me.size, me.key)"

    def job() -> list[list[str]]:
        rank = f"PMI_SIZE=2 MPI_LOCALNRANKS=2 '{sys.executable}' -c '{program}'"
        lines = subprocess.run(
            [proxy, "-c", f'PMI_RANK=0 {rank}; PMI_RANK=1 sh -c "$0"; true', f"PMI_RANK=1 {rank}"],
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        return [line.split(" ", 2) for line in lines]

    one, another = job(), job()
    for ranks in (one, another):
        assert [rank[:2] for rank in ranks] == [["0", "2"], ["1", "2"]]
        assert ranks[0][2] == ranks[1][2]
    assert one[0][2] != another[0][2]


@pytest.mark.parametrize(
    ("environment", "local_rank", "address"),
    [
        (torchrun(3, 4) | {"LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1234"}, 1, "127.0.0.1:1234"),
        (msrun(3, 4) | {"MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": "8118"}, None, "127.0.0.1:8118"),
        (open_mpi(3, 4) | {"OMPI_COMM_WORLD_LOCAL_RANK": "2"}, 2, ""),
        (hydra(3, 4) | {"MPI_LOCALRANKID": "0", "MASTER_PORT": "1234"}, 0, "localhost:1234"),
        (srun(3, 4) | {"SLURM_LOCALID": "3"}, 3, ""),
        (by_hand(3, 4), None, "127.0.0.1:29500"),
    ],
)
def test_a_job_has_what_its_launcher_tells(environment: Environment, local_rank: int | None, address: str) -> None:
    job = find(environment)
    assert (job.local_rank, job.address) == (local_rank, address)
    assert job.hosts == (socket.gethostname(),) * 4


def test_who_only_asks_for_the_rank_is_not_refused() -> None:
    job = locate(environment=srun(2, 4) | {"SLURM_NNODES": "2"})
    assert (job.rank, job.size, job.several_hosts, job.hosts) == (2, 4, "SLURM_NNODES=2", ())
