"""What a rank process is told about itself in its environment."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence

__all__ = [
    "MOST_RANKS",
    "SETTABLE",
    "environment_of_ranks",
    "launcher_variables",
    "new_job_key",
    "rank_environment",
    "rank_variables",
]

MOST_RANKS = 512  # of a group: max_ranks of native/group/shared_layout.hpp

# Those of `launcher_variables` that a user may set: they say nothing of the rank, the ranks or the job.
SETTABLE = frozenset(("DEVICE_ID", "ROLE_NAME"))

# Variables with these beginnings tell a process who another launcher made it. That is not who its ranks are.
_OTHER_LAUNCHERS = (
    "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "MPI_LOCAL", "MS_NODE_ID", "MS_ROLE", "MS_SCHED_",
    "MS_WORKER_NUM", "OMPI_", "PADDLE_", "PMIX_", "PMI_", "RANK_ID", "RANK_SIZE", "ROLE_", "SHIM_ENDPOINTS", "SLURM_STEP_ID", "TORCHELASTIC_",
)  # fmt: skip


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


def launcher_variables(
    rank: int, size: int, run: str, endpoints: Sequence[str], restart: int = 0, max_restarts: int = 0
) -> dict[str, str]:
    """Return what the launchers of torch, Paddle and MindSpore would tell a rank, for programs that read it themselves.

    *endpoints* has an address of this host for each rank. Left out is whatever starts something or is read by a launcher
    that a rank may start: docs/launchers.md says what. ``shim.core.job.launchers`` knows by *run*, which is what the job's
    key begins with, and by SHIM_ENDPOINTS, that these variables are not another launcher's.
    """
    me, count, addresses = str(rank), str(size), ",".join(endpoints)
    return {
        "SHIM_ENDPOINTS": addresses,
        # torchrun
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_NAME": "default",
        "ROLE_RANK": me,
        "ROLE_WORLD_SIZE": count,
        "TORCHELASTIC_RUN_ID": run,
        "TORCHELASTIC_RESTART_COUNT": str(restart),
        "TORCHELASTIC_MAX_RESTARTS": str(max_restarts),
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
        # msrun
        "RANK_ID": me,
        "RANK_SIZE": count,
        "DEVICE_ID": me,
        "LOCAL_RANK_SIZE": count,
        "MS_NODE_ID": me,
        "MS_WORKER_NUM": count,
    }
