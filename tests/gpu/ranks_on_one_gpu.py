"""Print what an all_reduce of several ranks on one GPU takes: by what they share, through host memory, and by NCCL where it serves them.

``shim run -n 2 tests/gpu/ranks_on_one_gpu.py`` measures on the GPU; ``--device cpu`` only shows that it runs.
"""

from __future__ import annotations

import os
import sys
import time
from statistics import median
from typing import Any

import torch

import shim
import shim.frontends.torch.distributed as dist

DEVICE = "cpu" if sys.argv[1:] == ["--device", "cpu"] else "cuda"
TURNS = 15


def milliseconds(group: Any, tensor: Any) -> float:
    """Return what a call takes until the device has done it, in the median."""
    seen = []
    for _ in range(TURNS):
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(tensor, group=group)
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        seen.append(time.perf_counter() - began)
    return 1000 * median(seen)


def main() -> None:
    dist.init_process_group()
    groups = {"shared": dist.new_group(backend="nccl"), "host": dist.new_group(backend="gloo")}
    if DEVICE == "cuda" and torch.cuda.nccl.version() >= (2, 30):
        os.environ["NCCL_MULTI_RANK_GPU_ENABLE"] = "1"  # which this group reads when it is first used
        groups["NCCL"] = dist.new_group(backend="nccl")
        dist.all_reduce(torch.ones(1, device=DEVICE), group=groups["NCCL"])
        del os.environ["NCCL_MULTI_RANK_GPU_ENABLE"]
    for size in (1 << 10, 1 << 20, 1 << 26):
        tensor = torch.ones(size // 4, device=DEVICE)
        took = {name: milliseconds(group, tensor) for name, group in groups.items()}
        if dist.get_rank() == 0:
            told = ", ".join(f"{name} {took[name]:.3f} ms" for name in took)
            print(f"{dist.get_world_size()} ranks, all_reduce of {size} bytes: {told}", flush=True)
    if dist.get_rank() == 0:
        print(shim.explain())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
