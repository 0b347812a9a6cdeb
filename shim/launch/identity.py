"""What a rank process is told about itself in its environment."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping

__all__ = ["environment_of_ranks", "new_job_key", "rank_environment", "rank_variables"]

# Variables with these beginnings tell a process who another launcher made it. That is not who its ranks are.
_OTHER_LAUNCHERS = (
    "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "MPI_LOCAL", "MS_NODE_ID", "MS_ROLE", "MS_SCHED_",
    "MS_WORKER_NUM", "OMPI_", "PADDLE_", "PMIX_", "PMI_", "RANK_ID", "RANK_SIZE", "ROLE_", "SLURM_STEP_ID", "TORCHELASTIC_",
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
    """Return what tells a process which rank it is: what ``shim.core.rendezvous`` reads, and scripts written for torchrun."""
    return {
        "SHIM_RANK": str(rank),
        "SHIM_WORLD_SIZE": str(size),
        "SHIM_JOB": job,
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
    }
