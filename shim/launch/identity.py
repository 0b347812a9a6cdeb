"""What a rank process is told about itself in its environment, and free addresses for it."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

MOST_RANKS = 512  # of a group: max_ranks of native/group/shared_layout.hpp

# Those of `launcher_variables` that a user may set: they say nothing of the rank, the ranks or the job.
SETTABLE = frozenset(("DEVICE_ID", "ROLE_NAME"))

# Variables with these beginnings tell a process who another launcher made it. That is not who its ranks are.
_OTHER_LAUNCHERS = (
    "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "MPI_LOCAL", "MS_NODE_ID", "MS_ROLE", "MS_SCHED_",
    "MS_WORKER_NUM", "OMPI_", "PADDLE_", "PMIX_", "PMI_", "RANK_ID", "RANK_SIZE", "ROLE_", "SHIM_ENDPOINTS", "SLURM_STEP_ID", "TORCHELASTIC_",
)  # fmt: skip


@dataclass(frozen=True)
class Share:
    """The ranks of a job that one host has: *count* from *first* on, of *size*; *number* of *hosts* is the host's."""

    first: int
    count: int
    size: int
    number: int = 0
    hosts: int = 1

    @staticmethod
    def all_of(size: int) -> Share:
        return Share(0, size, size)

    @staticmethod
    def of_host(number: int, counts: Sequence[int]) -> Share:
        """Return the share of one host, where the hosts have so many ranks each."""
        return Share(sum(counts[:number]), counts[number], sum(counts), number, len(counts))

    @property
    def ranks(self) -> range:
        return range(self.first, self.first + self.count)


def new_job_key() -> str:
    """Return a name for a job that no other job has."""
    return secrets.token_hex(16)


def rank_environment(rank: int, size: int, job: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of rank *rank* of the *size* ranks of *job*: this process's, *extra*, and who it is."""
    return environment_of_ranks(size, extra) | rank_variables(rank, size, job)


def environment_of_ranks(size: int, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what the environments of *size* ranks have in common: this process's without what another launcher told it, and *extra*."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OTHER_LAUNCHERS)}
    environment = {**inherited, **(extra or {})}
    if size > 1:
        environment.setdefault("OMP_NUM_THREADS", "1")
    return environment


def rank_variables(rank: int, size: int, job: str) -> dict[str, str]:
    """Return what tells a process which rank it is: what ``shim.core.job.rendezvous`` reads, and scripts written for torchrun."""
    return {
        "SHIM_RANK": str(rank),
        "SHIM_WORLD_SIZE": str(size),
        "SHIM_JOB": job,
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
    }


def environment_of_share(
    share: Share,
    rank: int,
    run: str,
    endpoints: Sequence[str],
    restart: int = 0,
    max_restarts: int = 0,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the environment of *rank*, one of this host's *share*: as ``rank_environment``, with what programs read, and where among the hosts it is."""
    environment = rank_environment(rank, share.size, f"{run}.{restart}", extra)
    told = launcher_variables(rank, share.size, run, endpoints, restart, max_restarts)
    return environment | told | _variables_of_host(share, rank, told)


def _variables_of_host(share: Share, rank: int, told: Mapping[str, str]) -> dict[str, str]:
    """Return what differs from *told* where a rank is not on the only host."""
    local, count = str(rank - share.first), str(share.count)
    mine = {
        "LOCAL_RANK": local,
        "LOCAL_WORLD_SIZE": count,
        "GROUP_RANK": str(share.number),
        "GROUP_WORLD_SIZE": str(share.hosts),
        "DEVICE_ID": local,
        "LOCAL_RANK_SIZE": count,
    }
    of_paddle = {"PADDLE_LOCAL_RANK": local, "PADDLE_LOCAL_SIZE": count, "PADDLE_RANK_IN_NODE": local}
    return mine | {name: value for name, value in of_paddle.items() if name in told}


def launcher_variables(
    rank: int, size: int, run: str, endpoints: Sequence[str], restart: int = 0, max_restarts: int = 0
) -> dict[str, str]:
    """Return what the launchers of torch, Paddle and MindSpore would tell a rank, for programs that read it themselves.

    *endpoints* has an address for each rank; where it has none, Paddle's variables are left out. Left out too is whatever starts something or is
    read by a launcher that a rank may start: docs/launchers.md says what. ``shim.core.job.launchers`` knows by *run*, which is what the job's
    key begins with, and by SHIM_ENDPOINTS, that these variables are not another launcher's.
    """
    me, count = str(rank), str(size)
    of_torch_and_mindspore = {
        # torchrun
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_NAME": "default",
        "ROLE_RANK": me,
        "ROLE_WORLD_SIZE": count,
        "TORCHELASTIC_RUN_ID": run,
        "TORCHELASTIC_RESTART_COUNT": str(restart),
        "TORCHELASTIC_MAX_RESTARTS": str(max_restarts),
        # msrun
        "RANK_ID": me,
        "RANK_SIZE": count,
        "DEVICE_ID": me,
        "LOCAL_RANK_SIZE": count,
        "MS_NODE_ID": me,
        "MS_WORKER_NUM": count,
    }
    if not endpoints:
        return of_torch_and_mindspore
    addresses = ",".join(endpoints)
    return of_torch_and_mindspore | {
        "SHIM_ENDPOINTS": addresses,
        # paddle.distributed.launch
        "PADDLE_TRAINER_ID": me,
        "PADDLE_TRAINERS_NUM": count,
        "PADDLE_GLOBAL_RANK": me,
        "PADDLE_GLOBAL_SIZE": count,
        "PADDLE_LOCAL_RANK": me,
        "PADDLE_LOCAL_SIZE": count,
        "PADDLE_RANK_IN_NODE": me,
        "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
        "PADDLE_TRAINER_ENDPOINTS": addresses,
    }


def free_addresses(count: int) -> list[str]:
    """Return so many addresses of this host, for programs that also use a framework's own communication."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]


def free_ports(count: int) -> list[int]:
    """Return so many ports that are free on all addresses of this host."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("", 0))
        return [one.getsockname()[1] for one in sockets]
