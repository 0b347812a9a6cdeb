"""One world of three ranks, each with its own framework: torch, PaddlePaddle and MindSpore code in one job.

    shim run -n 3 examples/mixed_frameworks.py

Rank 0 holds torch tensors and calls torch.distributed's functions, rank 1 Paddle's (3.x), rank 2 MindSpore's (mint). Each
prints the bytes of its results; those of all_reduce and all_gather_into_tensor are the same on all ranks, bit for bit.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import shim.frontends.torch.distributed as torch_dist

COUNT = 100_003  # elements a rank gives to all_reduce; not a multiple of anything
PART = 1000  # elements each rank sends to each in all_to_all_single


def main() -> None:
    torch_dist.init_process_group()  # one world for all frontends of a process
    rank, size = torch_dist.get_rank(), torch_dist.get_world_size()
    if size != 3:
        sys.exit(f"this example needs three ranks, got {size}: shim run -n 3 {sys.argv[0]}")
    inputs = [np.random.default_rng(r).standard_normal(COUNT).astype(np.float32) for r in range(size)]
    reduced, gathered, exchanged = [torch_rank, paddle_rank, mindspore_rank][rank](inputs[rank], size)

    in_rank_order = (inputs[0] + inputs[1]) + inputs[2]  # as on one host; between hosts the sums within each come first
    np.testing.assert_allclose(reduced, in_rank_order, atol=1e-5)
    assert_same_bits("all_gather_into_tensor", gathered, np.concatenate(inputs))
    parts = [x[: PART * size].reshape(size, PART)[rank] for x in inputs]
    assert_same_bits("all_to_all_single", exchanged, np.concatenate(parts))
    digests = [hashlib.sha256(result.tobytes()).hexdigest()[:12] for result in (reduced, gathered)]
    print(f"rank {rank}: all_reduce {digests[0]}, all_gather_into_tensor {digests[1]}", flush=True)


class Tensors(NamedTuple):
    """How a framework makes a tensor of an array, and an array of a tensor."""

    make: Callable[[np.ndarray], Any]
    read: Callable[[Any], np.ndarray]


class Functions(NamedTuple):
    """The three collectives under a framework's own names."""

    all_reduce: Callable[..., Any]
    all_gather: Callable[..., Any]
    all_to_all: Callable[..., Any]


def run(dist: Functions, tensors: Tensors, mine: np.ndarray, size: int) -> tuple[np.ndarray, ...]:
    reduced = tensors.make(mine)
    dist.all_reduce(reduced)
    gathered = tensors.make(np.zeros(COUNT * size, np.float32))
    dist.all_gather(gathered, tensors.make(mine))
    exchanged = tensors.make(np.zeros(PART * size, np.float32))
    dist.all_to_all(exchanged, tensors.make(mine[: PART * size]))
    return tensors.read(reduced), tensors.read(gathered), tensors.read(exchanged)


def torch_rank(mine: np.ndarray, size: int) -> tuple[np.ndarray, ...]:
    import torch

    functions = Functions(torch_dist.all_reduce, torch_dist.all_gather_single, torch_dist.all_to_all_single)
    return run(functions, Tensors(lambda x: torch.from_numpy(x.copy()), lambda t: t.numpy()), mine, size)


def paddle_rank(mine: np.ndarray, size: int) -> tuple[np.ndarray, ...]:
    import paddle

    import shim.frontends.paddle_3.distributed as dist

    dist.init_parallel_env()
    functions = Functions(dist.all_reduce, dist.all_gather, dist.alltoall_single)
    return run(functions, Tensors(paddle.to_tensor, lambda t: t.numpy()), mine, size)


def mindspore_rank(mine: np.ndarray, size: int) -> tuple[np.ndarray, ...]:
    import mindspore

    import shim.frontends.mindspore.mint.distributed as dist

    dist.init_process_group()
    functions = Functions(dist.all_reduce, dist.all_gather_into_tensor, dist.all_to_all_single)
    return run(functions, Tensors(mindspore.Tensor, lambda t: t.asnumpy()), mine, size)


def assert_same_bits(what: str, seen: np.ndarray, expected: np.ndarray) -> None:
    if seen.tobytes() != expected.tobytes():
        raise AssertionError(f"{what}: {seen} where {expected} was expected")


if __name__ == "__main__":
    main()
