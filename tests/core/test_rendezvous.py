"""Who a process is, from what it is told: every launcher's variables, arguments, URLs, and what is wrong with them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shim.core.rendezvous import Identity, locate
from shim.errors import ArgumentError, ShimError, StateError, UnsupportedError

ROOT = Path(__file__).parents[2]

Environment = dict[str, str]


def shim_run(rank: int, size: int) -> Environment:
    return {"SHIM_RANK": str(rank), "SHIM_WORLD_SIZE": str(size), "SHIM_JOB": "5eed"}


def torchrun(rank: int, size: int) -> Environment:
    return by_hand(rank, size) | {
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": "0",
    }


def paddle(rank: int, size: int) -> Environment:
    return {
        "PADDLE_TRAINER_ID": str(rank),
        "PADDLE_TRAINERS_NUM": str(size),
        "PADDLE_NNODES": "1",
        "PADDLE_LOCAL_SIZE": str(size),
        "PADDLE_MASTER": "10.0.0.1:6000",
        "PADDLE_TRAINER_ENDPOINTS": ",".join(f"10.0.0.1:{6001 + other}" for other in range(size)),
        "PADDLE_CURRENT_ENDPOINT": f"10.0.0.1:{6001 + rank}",
    }


def paddle_spawn(rank: int, size: int) -> Environment:
    spawned = paddle(rank, size)
    return {name: spawned[name] for name in ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ENDPOINTS")}


def msrun(rank: int, size: int) -> Environment:
    return {
        "MS_ROLE": "MS_WORKER",
        "MS_WORKER_NUM": str(size),
        "MS_SCHED_HOST": "127.0.0.1",
        "MS_SCHED_PORT": "8118",
        "MS_NODE_ID": str(rank),
        "RANK_ID": str(rank),
        "RANK_SIZE": str(size),
        "DEVICE_ID": str(rank),
    }


def open_mpi(rank: int, size: int) -> Environment:
    return {
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_SIZE": str(size),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(size),
        "PMIX_RANK": str(rank),
        "PMIX_NAMESPACE": "prterun-host-7@1",
    }


def hydra(rank: int, size: int) -> Environment:
    return {
        "PMI_RANK": str(rank),
        "PMI_SIZE": str(size),
        "MPI_LOCALRANKID": str(rank),
        "MPI_LOCALNRANKS": str(size),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29500",
    }


def srun(rank: int, size: int) -> Environment:
    return {
        "SLURM_JOB_ID": "42",
        "SLURM_STEP_ID": "3",
        "SLURM_PROCID": str(rank),
        "SLURM_NTASKS": str(size),
        "SLURM_NNODES": "1",
    }


def by_hand(rank: int, size: int) -> Environment:
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


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


def find(environment: Environment, rank: Any = None, size: Any = None, init_method: str | None = None) -> Identity:
    return locate(rank, size, init_method, environment)


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


class TestArguments:
    @pytest.mark.parametrize("init_method", [None, "env://"])
    def test_rank_and_size_win_over_the_environment(self, init_method: str | None) -> None:
        me = find(torchrun(0, 2), 2, 3, init_method)
        assert (me.rank, me.size, me.key) == (2, 3, find(torchrun(0, 2)).key)

    @pytest.mark.parametrize(("rank", "size"), [(1, None), (None, 3), (1, 3)])
    def test_each_completes_the_other(self, rank: int | None, size: int | None) -> None:
        me = find(by_hand(0, 2), rank, size)
        assert (me.rank, me.size) == (0 if rank is None else rank, 2 if size is None else size)

    def test_what_they_replace_is_not_read(self) -> None:
        assert find(by_hand(0, 2) | {"RANK": "abc", "WORLD_SIZE": "def"}, 1, 2).rank == 1

    def test_an_address_in_the_environment_is_enough_beside_them(self) -> None:
        address = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
        assert find(address, 1, 2).key == find(address, 0, 2).key == find(by_hand(0, 2)).key

    @pytest.mark.parametrize("init_method", [None, "tcp://localhost:29500", "file:///tmp/meeting"])
    def test_a_world_of_one_needs_no_address_and_meets_nobody(self, init_method: str | None) -> None:
        me = find({}, 0, 1, init_method)
        assert (me.rank, me.size) == (0, 1)
        assert me.key != find({}, 0, 1, init_method).key

    def test_integers_of_other_types_are_taken(self) -> None:
        assert find(by_hand(0, 2), np.int64(1), np.int32(2)).rank == 1

    @pytest.mark.parametrize(
        ("rank", "size", "kind", "words"),
        [
            (0, None, ArgumentError, ["world_size must be given too"]),
            (None, 2, ArgumentError, ["rank must be given too"]),
            (0, 2, StateError, ["MASTER_ADDR and MASTER_PORT are not set", "2 ranks"]),
            (2, 2, ArgumentError, ["the rank must be in 0..1, got 2"]),
            (-2, 2, ArgumentError, ["the rank must be in 0..1, got -2"]),
            (0, 0, ArgumentError, ["the world size must be at least 1, got 0"]),
            (True, 2, ArgumentError, ["rank must be an int, got True"]),
            ("0", 2, ArgumentError, ["rank must be an int, got '0'"]),
            (0, 2.0, ArgumentError, ["world_size must be an int, got 2.0"]),
        ],
    )
    def test_wrong_ones_are_refused(self, rank: object, size: object, kind: type[ShimError], words: list[str]) -> None:
        assert_raises(kind, words, {}, rank, size)


class TestInitMethod:
    @pytest.mark.parametrize(
        "init_method", ["tcp://localhost:29501", "tcp://127.0.0.1:29501", f"tcp://{socket.gethostname()}:29501"]
    )
    def test_tcp_names_a_job_by_its_port(self, init_method: str) -> None:
        me = find({}, 1, 2, init_method)
        assert (me.rank, me.size) == (1, 2)
        assert me.key == find({}, 0, 2, "tcp://localhost:29501").key != find({}, 0, 2, "tcp://localhost:29502").key

    def test_tcp_and_variables_meet_at_the_same_port(self) -> None:
        assert find({}, 1, 2, "tcp://localhost:29500").key == find(by_hand(0, 2)).key

    def test_tcp_binds_no_port(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            assert find({}, 0, 2, f"tcp://127.0.0.1:{taken.getsockname()[1]}").rank == 0

    def test_file_names_a_job_by_its_path_and_makes_no_file(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path)
        me, other = find({}, 0, 2, f"file://{tmp_path}/meeting"), find({}, 1, 2, f"file://{tmp_path}/link/meeting")
        assert me.key == other.key != find({}, 0, 2, f"file://{tmp_path}/another").key
        assert not (tmp_path / "meeting").exists()

    @pytest.mark.parametrize("url", ["tcp://localhost:29500?rank=1&world_size=3", "file:///tmp/x?world_size=3&rank=1"])
    def test_a_query_gives_rank_and_size(self, url: str) -> None:
        me = find({}, None, None, url)
        assert (me.rank, me.size) == (1, 3)

    def test_arguments_win_over_a_query(self) -> None:
        assert find({}, 2, None, "tcp://localhost:29500?rank=1&world_size=3").rank == 2

    def test_a_launcher_completes_it(self) -> None:
        me = find(open_mpi(1, 2), None, None, "tcp://localhost:29500")
        assert (me.rank, me.size, me.key) == (1, 2, find({}, 0, 2, "tcp://localhost:29500").key)

    @pytest.mark.parametrize(
        ("url", "kind", "words"),
        [
            ("mpi://", ArgumentError, ["env://, file://, tcp://", "'mpi://'"]),
            ("localhost:29500", ArgumentError, ["env://, file://, tcp://"]),
            ("tcp://localhost", ArgumentError, ["tcp://host:port", "'tcp://localhost'"]),
            ("tcp://:29500", ArgumentError, ["tcp://host:port"]),
            ("tcp://localhost:0", ArgumentError, ["1 to 65535, got 0"]),
            ("tcp://localhost:65536", ArgumentError, ["tcp://host:port"]),
            ("tcp://localhost:abc", ArgumentError, ["tcp://host:port", "abc"]),
            ("tcp://no-such-host.invalid:29500", ArgumentError, ["init_method", "no-such-host.invalid"]),
            ("tcp://192.0.2.1:29500", UnsupportedError, ["192.0.2.1", "c10d, mpi and hierarchical"]),
            ("file://", ArgumentError, ["file:///path"]),
            ("file://relative", ArgumentError, ["file:///path"]),
            ("file://other/path", ArgumentError, ["file:///path"]),
            ("tcp://localhost:29500?rank=x", ArgumentError, ["init_method's rank", "'x'"]),
            ("tcp://localhost:29500?rank=2", ArgumentError, ["rank must be in 0..1, got 2"]),
        ],
    )
    def test_wrong_ones_are_refused(self, url: str, kind: type[ShimError], words: list[str]) -> None:
        assert_raises(kind, words, {}, None if "rank" in url else 0, 2, url)

    @pytest.mark.parametrize("url", ["tcp://localhost:29500", "file:///tmp/meeting"])
    def test_without_rank_and_size_it_says_nothing(self, url: str) -> None:
        assert_raises(ArgumentError, ["rank and world_size must be given too"], {}, None, None, url)


class TestScheduler:
    def test_the_process_that_is_no_rank_ends_with_status_0(self) -> None:
        with pytest.raises(SystemExit) as ended:
            find(msrun(0, 2) | {"MS_ROLE": "MS_SCHED"})
        assert ended.value.code == 0

    def test_a_rank_started_from_it_goes_on(self) -> None:
        assert find(msrun(0, 2) | {"MS_ROLE": "MS_SCHED"} | shim_run(0, 2)).launcher == "shim run"


class TestNesting:
    @pytest.mark.parametrize("inner", [torchrun, paddle, msrun, shim_run])
    @pytest.mark.parametrize("outer", [open_mpi, hydra, srun])
    def test_a_framework_s_launcher_is_inside_mpi_and_slurm(
        self, inner: Callable[[int, int], Environment], outer: Callable[[int, int], Environment]
    ) -> None:
        assert find(outer(0, 1) | inner(2, 3)).launcher == find(inner(2, 3)).launcher

    def test_mpi_is_inside_slurm(self) -> None:
        assert find(srun(0, 1) | open_mpi(1, 2)).launcher == "Open MPI"

    def test_pmi_under_srun_is_slurm_s(self) -> None:
        assert find(srun(1, 2) | {"PMI_RANK": "1", "PMI_SIZE": "2"}).launcher == "srun"

    @pytest.mark.parametrize("outer", [shim_run, open_mpi, srun])
    def test_one_launched_process_may_start_ranks_by_hand(self, outer: Callable[[int, int], Environment]) -> None:
        assert find(outer(0, 1) | by_hand(2, 4)).launcher == "variables set by hand"

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
            (shim_run(0, 2) | paddle(0, 4), ["SHIM_WORLD_SIZE=2, of shim run", "PADDLE_TRAINERS_NUM=4"]),
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
def test_ranks_on_several_hosts_are_told_which_engines_could_serve_them(environment: Environment, words: str) -> None:
    assert_raises(UnsupportedError, ["several hosts", "c10d, mpi and hierarchical", words], environment)


def test_paddle_s_endpoints_are_read_from_the_file_they_were_moved_to(tmp_path: Path) -> None:
    moved = paddle(1, 2)
    backup = tmp_path / "variables.json"
    backup.write_text(json.dumps({"PADDLE_TRAINER_ENDPOINTS": moved.pop("PADDLE_TRAINER_ENDPOINTS")}))
    assert find(moved | {"PADDLE_BACKUP_ENV_PATH": str(backup)}).key == find(paddle(0, 2)).key


def test_hydra_s_jobs_are_told_apart_by_the_process_that_starts_their_ranks(tmp_path: Path) -> None:
    proxy = tmp_path / "hydra_pmi_proxy"  # a process has the name of the file it runs
    proxy.symlink_to("/bin/sh")
    program = "from shim.core.rendezvous import locate; me = locate(); print(me.rank, me.size, me.key)"

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


def assert_raises(kind: type[ShimError], words: list[str], environment: Environment, *arguments: Any) -> None:
    """Fail unless ``locate`` raises exactly this class of error, with all these words."""
    with pytest.raises(kind) as raised:
        find(environment, *arguments)
    assert type(raised.value) is kind
    for word in words:
        assert word in str(raised.value)
