"""What the ranks do that tests start with ``spawn``; it must be importable in them."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from datetime import timedelta
from typing import Any

import numpy as np

from shim.frontends.paddle_3 import distributed as dist


def sum_up(start: float, scale: float = 1.0) -> tuple[int, float]:
    """Return the rank and the sum over all ranks of *start* + rank."""
    dist.init_parallel_env()
    tensor = np.array([start + dist.get_rank()]) * scale
    dist.all_reduce(tensor)
    return dist.get_rank(), float(tensor[0])


def describe() -> dict[str, Any]:
    """Return what a rank is told about itself before it initialises."""
    env = dist.ParallelEnv()
    return {
        "rank": dist.get_rank(),
        "size": dist.get_world_size(),
        "device": env.device_id,
        "endpoint": env.trainer_endpoints.index(env.current_endpoint),
        "endpoints": len(set(env.trainer_endpoints)),
        "trainer": os.environ["PADDLE_TRAINER_ID"],
        "backend": os.environ.get("PADDLE_DISTRI_BACKEND"),
        "parent": os.getppid(),
    }


def fail_on(rank: int, how: str) -> None:
    """Fail on one rank while the others wait for it."""
    dist.init_parallel_env()
    if dist.get_rank() == rank:
        if how == "raise":
            raise KeyError("{input} is not {there}")
        if how == "words":
            raise RuntimeError("no PeerLostError: of my own")
        if how == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        if how == "linger":  # its process ends after those of the others
            atexit.register(time.sleep, 0.5)
            raise KeyError("slowly")
        if how == "exit":
            sys.exit(3)
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def ignore_the_end() -> None:
    """Live on when asked to end; rank 0 fails once rank 1 is as stubborn as that."""
    dist.init_parallel_env()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    dist.barrier()
    if dist.get_rank() == 0:
        raise ValueError("over")
    time.sleep(300)


def give_back_much(count: int) -> bytes:
    """Return more than a pipe holds."""
    return bytes([dist.get_rank()]) * count


def wait_in_a_circle() -> str:
    """Return what rank 0 is told of its wait in a group, while rank 1 waits for it in the world."""
    dist.init_parallel_env()
    pair = dist.new_group([0, 1], timeout=timedelta(seconds=1 if dist.get_rank() == 0 else 60))
    told = ""
    if dist.get_rank() == 0:
        try:
            dist.barrier(pair)
        except RuntimeError as error:
            told = str(error)
    dist.barrier()
    return told


def cannot_give_back() -> Any:
    return lambda: None


def sleep() -> None:
    """Print the process's id, and do nothing for long."""
    sys.stdout.write(f"{os.getpid()}\n")
    sys.stdout.flush()
    time.sleep(300)


def spawn_sleepers(start_method: str) -> None:
    dist.spawn(sleep, nprocs=2, start_method=start_method)


def leave_a_child(handle: str) -> None:
    """End without an answer while a child of one's own lives on, which takes its id to the file *handle*."""
    child = os.fork()
    if child == 0:
        time.sleep(300)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(str(child))
    os._exit(4)
