"""One rank of a program with a mistake in it: ``python mistake.py LIBRARY MISTAKE``, started by compare.py."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def main() -> None:
    library, mistake = sys.argv[1:]
    rank, all_reduce = LIBRARIES[library]()
    all_reduce(np.ones(1000, np.float32))
    MISTAKES[mistake](rank, all_reduce)
    print("ended as if nothing had happened", flush=True)


def torch_with_gloo() -> tuple[int, Callable[[Any], None]]:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    return dist.get_rank(), lambda array: dist.all_reduce(torch.from_numpy(array))


def open_mpi() -> tuple[int, Callable[[Any], None]]:
    from mpi4py import MPI

    return MPI.COMM_WORLD.rank, lambda array: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, array)


def ours() -> tuple[int, Callable[[Any], None]]:
    import shim.frontends.torch.distributed as dist

    dist.init_process_group()
    return dist.get_rank(), dist.all_reduce


def wrong_shape(rank: int, all_reduce: Callable[[Any], None]) -> None:
    array = np.full(900 if rank == 1 else 1000, rank + 1, np.float32)
    all_reduce(array)
    print("sum of the first element:", array[0], flush=True)


def skipped_call(rank: int, all_reduce: Callable[[Any], None]) -> None:
    if rank != 1:
        all_reduce(np.ones(1000, np.float32))
    load_batch(rank)
    all_reduce(np.ones(10, np.float32))


def load_batch(rank: int) -> None:
    """Take a while on the rank that is late already."""
    if rank == 1:
        time.sleep(60)


def killed(rank: int, all_reduce: Callable[[Any], None]) -> None:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    all_reduce(np.ones(1000, np.float32))


LIBRARIES = {"torch": torch_with_gloo, "openmpi": open_mpi, "shim": ours}
MISTAKES = {"shape": wrong_shape, "skipped": skipped_call, "killed": killed}

if __name__ == "__main__":
    main()
