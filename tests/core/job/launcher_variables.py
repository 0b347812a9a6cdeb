"""What each launcher tells its ranks in their environment, and ways to ask ``locate`` about it."""

from __future__ import annotations

from typing import Any

import pytest

from shim.core.job.job import Job
from shim.core.job.rendezvous import locate
from shim.errors import ShimError

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


def find(environment: Environment, rank: Any = None, size: Any = None, init_method: str | None = None) -> Job:
    return locate(rank, size, init_method, environment)


def assert_raises(kind: type[ShimError], words: list[str], environment: Environment, *arguments: Any) -> None:
    """Fail unless ``locate`` raises exactly this class of error, with all these words."""
    with pytest.raises(kind) as raised:
        find(environment, *arguments)
    assert type(raised.value) is kind
    for word in words:
        assert word in str(raised.value)
