"""Print what a call of one rank costs on this GPU, by the frontend's engine and by torch's own NCCL, in turns."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
import torch.distributed as own

import shim.frontends.torch.distributed as ours

CALLS = 2_000
TURNS = 7


def seconds_per_call(call: Callable[..., Any], tensor: Any) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(CALLS):
        call(tensor)
    ended = time.perf_counter()
    torch.cuda.synchronize()
    return (ended - began) / CALLS


def main() -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
    own.init_process_group("nccl", store=own.HashStore(), rank=0, world_size=1)
    ours.init_process_group("nccl", rank=0, world_size=1)
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "NCCL", torch.cuda.nccl.version())
    for count in (2, 1 << 20):
        tensor = torch.ones(count, device="cuda")
        for call in (ours.all_reduce, own.all_reduce):
            call(tensor)
        seen = [[seconds_per_call(call, tensor) for call in (ours.all_reduce, own.all_reduce)] for _ in range(TURNS)]
        mine, theirs = (median(column) * 1e6 for column in zip(*seen, strict=True))
        print(
            f"all_reduce of {4 * count} bytes: {mine:.1f} us a call here, {theirs:.1f} us by torch, {mine - theirs:+.1f} us"
        )
    ours.destroy_process_group()
    own.destroy_process_group()


if __name__ == "__main__":
    main()
