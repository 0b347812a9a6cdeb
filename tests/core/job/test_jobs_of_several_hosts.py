"""What a job whose ranks are on several hosts is told: one name and one address on all of them, whatever started it."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from launcher_variables import (
    Environment,
    assert_raises,
    by_hand,
    hydra,
    msrun,
    open_mpi,
    paddle,
    shim_run,
    srun,
    torchrun,
)

from shim.core.job import hosts, meeting_at_a_store, rendezvous
from shim.core.job.hosts import first_of_list
from shim.core.job.job import Job
from shim.core.job.origin import Origin
from shim.core.job.rendezvous import locate
from shim.core.job.stores import HashStore, PrefixStore
from shim.errors import ArgumentError, StateError

ROOT = Path(__file__).parents[3]
SECRET = "0123456789abcdef"
MINE, OTHER = "192.0.2.1", "192.0.2.2"  # of hosts in documents


def torchrun_on_two(rank: int) -> Environment:
    """Return the variables of the second start of the ranks, after one of the second host has failed."""
    told = torchrun(rank, 4) | {"GROUP_WORLD_SIZE": "2", "GROUP_RANK": str(rank // 2), "MASTER_ADDR": MINE}
    local = {"LOCAL_RANK": str(rank % 2), "LOCAL_WORLD_SIZE": "2"}
    return told | local | {"TORCHELASTIC_RESTART_COUNT": str(rank // 2)}


def paddle_on_two(rank: int) -> Environment:
    endpoints = f"{MINE}:6001,{MINE}:6002,{OTHER}:6001,{OTHER}:6002"
    told = {"PADDLE_NNODES": "2", "PADDLE_LOCAL_SIZE": "2", "PADDLE_LOCAL_RANK": str(rank % 2)}
    return paddle(rank, 4) | told | {"PADDLE_TRAINER_ENDPOINTS": endpoints, "PADDLE_MASTER": f"{OTHER}:6000"}


def msrun_on_two(rank: int) -> Environment:
    return msrun(rank, 4) | {"MS_SCHED_HOST": MINE, "SHIM_SECRET": SECRET}


def open_mpi_on_two(rank: int) -> Environment:
    return open_mpi(rank, 4) | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": str(rank % 2)}


def hydra_on_two(rank: int) -> Environment:
    return hydra(rank, 4) | {"MPI_LOCALNRANKS": "2", "MPI_LOCALRANKID": str(rank % 2), "MASTER_ADDR": MINE}


def srun_on_two(rank: int) -> Environment:
    told = {"SLURM_NNODES": "2", "SLURM_NODELIST": "gpu[07,09-12],login", "SLURM_LOCALID": str(rank % 2)}
    return srun(rank, 4) | told


def shim_run_on_two(rank: int) -> Environment:
    local = {"LOCAL_RANK": str(rank % 2), "LOCAL_WORLD_SIZE": "2"}
    return shim_run(rank, 4) | by_hand(rank, 4) | local | {"GROUP_WORLD_SIZE": "2", "MASTER_ADDR": MINE}


def by_hand_on_two(rank: int) -> Environment:
    return by_hand(rank, 4) | {"MASTER_ADDR": MINE, "LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": str(rank % 2)}


LAUNCHERS = [
    (torchrun_on_two, f"{MINE}:29500", 2),
    (paddle_on_two, f"{MINE}:6001", 2),
    (msrun_on_two, f"{MINE}:8118", None),
    (open_mpi_on_two, "", 2),
    (hydra_on_two, f"{MINE}:29500", 2),
    (srun_on_two, "gpu07:22382", None),
    (shim_run_on_two, f"{MINE}:29500", 2),
    (by_hand_on_two, f"{MINE}:29500", 2),
]


@pytest.mark.parametrize(("launcher", "address", "local_size"), LAUNCHERS)
def test_all_ranks_have_one_name_and_one_address(
    launcher: Callable[[int], Environment], address: str, local_size: int | None
) -> None:
    jobs = [locate(environment=launcher(rank)) for rank in range(4)]
    assert [(job.rank, job.size) for job in jobs] == [(rank, 4) for rank in range(4)]
    assert len({job.key for job in jobs}) == 1
    assert all(job.several_hosts for job in jobs)
    assert {(job.address, job.meeting_address, job.local_size) for job in jobs} == {(address, address, local_size)}
    assert [job.local_rank for job in jobs] == ([None] * 4 if "msrun" in launcher.__name__ else [0, 1, 0, 1])


@pytest.mark.parametrize("launcher", [torchrun, paddle, open_mpi, hydra, srun, shim_run])
@pytest.mark.parametrize("secret", [{}, {"SHIM_SECRET": SECRET}])
def test_a_launcher_that_counts_hosts_tells_of_one(
    launcher: Callable[[int, int], Environment], secret: Environment
) -> None:
    job = locate(environment=launcher(1, 4) | secret)
    assert (job.several_hosts, job.meeting_address) == ("", "")


class TestRankZeroSHost:
    """Where nothing tells the number of hosts, the one at which the ranks meet sees only that it is itself."""

    @pytest.mark.parametrize("launcher", [by_hand, msrun])
    @pytest.mark.parametrize(
        ("host", "secret", "may_be_several"),
        [
            ("127.0.0.1", SECRET, False),
            ("localhost", SECRET, False),
            ("127.1.2.3", SECRET, False),
            ("this host", "", False),
            ("this host", SECRET, True),
        ],
    )
    def test_expects_others_where_they_can_come_and_have_a_secret(
        self, launcher: Callable[[int, int], Environment], host: str, secret: str, may_be_several: bool
    ) -> None:
        host = socket.gethostname() if host == "this host" else host
        told = launcher(0, 4) | {"MASTER_ADDR": host, "MS_SCHED_HOST": host, "SHIM_SECRET": secret}
        assert bool(locate(environment=told).several_hosts) == may_be_several
        url = locate(0, 4, f"tcp://{host}:1234", {"SHIM_SECRET": secret})
        assert (bool(url.several_hosts), url.address) == (may_be_several, f"{host}:1234")

    def test_is_where_msrun_s_ranks_are_known(self) -> None:
        """Without --node_rank the workers on the scheduler's host all inherit its RANK_ID=0."""
        told = {name: value for name, value in msrun_on_two(0).items() if name != "MS_NODE_ID"}
        assert_raises(StateError, ["MS_NODE_ID is not set", "--node_rank"], told)


class TestHydra:
    def key(self, tmp_path: Path, *options: str) -> str:
        """Return the key of one of four ranks, two a host, without MASTER_PORT, under a proxy that was started with *options*."""
        proxy = tmp_path / "hydra_pmi_proxy"
        if not proxy.exists():
            proxy.symlink_to("/bin/sh")  # a process has the name of the file it runs
        program = "from shim.core.job.rendezvous import locate; print(locate().key)"
        done = subprocess.run(
            [proxy, "-c", '"$0" -c "$1"; true', sys.executable, program, *options],
            env={"PYTHONPATH": str(ROOT), "PMI_RANK": "0", "PMI_SIZE": "4", "MPI_LOCALNRANKS": "2"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout or done.stderr.splitlines()[-2]

    def test_the_proxies_of_a_job_name_it_by_their_mpiexec(self, tmp_path: Path) -> None:
        first, second = (self.key(tmp_path, "--control-port", "host7:4000", "--proxy-id", one) for one in "01")
        assert first == second == "MPICH or Intel MPI hydra host7:4000\n"
        assert self.key(tmp_path, "--control-port", "host7:4001") != first

    def test_a_proxy_that_does_not_tell_leaves_it_to_the_user(self, tmp_path: Path) -> None:
        assert "nothing names the job" in self.key(tmp_path)


class TestSlurm:
    @pytest.mark.parametrize(
        ("written", "first"),
        [
            ("node1", "node1"),
            ("node1,node2", "node1"),
            ("node[3-7]", "node3"),
            ("node[03-10,12],login", "node03"),
            ("rack[1-2]node[08,09-11]", "rack1node08"),
            ("gpu[7]-ib,other", "gpu7-ib"),
            ("", ""),
        ],
    )
    def test_the_first_host_of_a_list(self, written: str, first: str) -> None:
        assert first_of_list(written) == first

    def test_a_step_s_own_list_counts_before_the_job_s(self) -> None:
        told = srun_on_two(0) | {"SLURM_STEP_NODELIST": "gpu[09-10]"}
        assert locate(environment=told).address.startswith("gpu09:")

    def test_another_step_has_another_port(self) -> None:
        first, second = (locate(environment=srun_on_two(0) | {"SLURM_STEP_ID": step}) for step in "01")
        assert first.address != second.address

    def test_an_address_that_was_set_counts(self) -> None:
        told = srun_on_two(3) | {"MASTER_ADDR": MINE, "MASTER_PORT": "1234"}
        assert locate(environment=told).address == f"{MINE}:1234"


class TestSecret:
    def test_is_as_it_was_set_and_not_shown(self) -> None:
        job = locate(environment={"SHIM_SECRET": SECRET, "SHIM_INTERFACE": "eth7"})
        assert (job.secret, job.interface) == (SECRET.encode(), "eth7")
        assert SECRET not in repr(job)
        assert locate(environment={}).secret == b""

    def test_that_can_be_guessed_is_refused(self) -> None:
        assert_raises(ArgumentError, ["at least 16 characters, got 15", "openssl rand"], {"SHIM_SECRET": SECRET[1:]})


class TestStore:
    """Threads are the ranks; odd ones are on another host."""

    @pytest.fixture(autouse=True)
    def _hosts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names = threading.local()
        self.ways: dict[str, str] = {}  # this host's address on the way to each host
        self.asked: list[str] = []
        monkeypatch.setattr(meeting_at_a_store, "_this_host", lambda: self.names.host)
        monkeypatch.setattr(hosts, "address_towards", self.way_to)

    def way_to(self, host: str) -> str:
        self.asked.append(host)
        return self.ways.get(host, "")

    def jobs(self, store: Any, names: Sequence[str] = ("a boot", "b boot")) -> list[Any]:
        """Return what each rank of four is told, or the error that it gets."""

        def job(rank: int) -> Job | Exception:
            self.names.host = names[rank % 2]
            try:
                return rendezvous.locate_at(store, rank, 4)
            except StateError as error:
                return error

        with ThreadPoolExecutor(4) as threads:
            return list(threads.map(job, range(4)))

    def test_rank_zero_tells_where_to_meet(self) -> None:
        self.ways = {"b": "127.0.0.1"}
        jobs = self.jobs(HashStore(5))
        assert len({(job.key, job.address, job.several_hosts) for job in jobs}) == 1
        host, _, port = jobs[0].meeting_address.rpartition(":")
        assert host == "127.0.0.1"
        assert int(port) > 0
        assert jobs[0].several_hosts == "rank 0 is on a boot, and rank 1 on b boot"

    def test_the_way_to_the_store_counts_first(self) -> None:
        self.ways = {"b": "127.0.0.1", "server": "127.0.0.2"}
        store = HashStore(5)
        store.host = "server"
        assert {job.address.partition(":")[0] for job in self.jobs(PrefixStore("of", store))} == {"127.0.0.2"}
        assert self.asked == ["server"]

    def test_a_chosen_interface_counts_before_that(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHIM_INTERFACE", "lo")
        assert {job.address.partition(":")[0] for job in self.jobs(HashStore(5))} == {"127.0.0.1"}
        assert not self.asked

    def test_an_interface_that_is_none_leaves_nobody_waiting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHIM_INTERFACE", "eth77")
        first, *others = self.jobs(HashStore(5))
        assert isinstance(first, StateError)
        assert "SHIM_INTERFACE=eth77: no such interface" in str(first)
        assert "lo (127.0.0.1" in str(first)
        assert {str(job) for job in others} == {f"rank 0: {first}"}

    def test_on_one_host_nobody_looks_for_an_address(self) -> None:
        assert {(job.address, job.several_hosts) for job in self.jobs(HashStore(5), ["a boot"] * 2)} == {("", "")}
        assert not self.asked

    def test_other_parents_on_another_host_prove_no_other_job(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def origin(rank: int, *_: object) -> Origin:
            return Origin(f"{rank}.1", f"of {self.names.host}", is_proven=True)

        monkeypatch.setattr(rendezvous, "origin_of_this_process", origin)
        assert len({job.key for job in self.jobs(HashStore(5))}) == 1
