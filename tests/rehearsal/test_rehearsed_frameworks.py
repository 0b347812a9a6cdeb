"""One program, written for each framework: rehearsed ranks make the same calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from shim.trace.reading import read_recording

RANKS = 4

PROGRAMS = {
    "torch": """
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
pairs = [dist.new_group([first, first + 1]) for first in range(0, size, 2)]
pair = pairs[rank // 2]
x = torch.ones(6, 4)
dist.broadcast(x, 1)
dist.all_reduce(x)
dist.all_reduce(x, op=dist.ReduceOp.MAX, group=pair)
dist.reduce(x, 2)
dist.all_gather([torch.empty(6, 4) for _ in range(size)], x)
dist.reduce_scatter(torch.empty(3), [torch.ones(3) for _ in range(size)])
dist.all_to_all([torch.empty(2) for _ in range(size)], [torch.ones(2) for _ in range(size)])
dist.scatter(torch.empty(5), [torch.ones(5) for _ in range(size)] if rank == 0 else None, 0)
work = dist.all_reduce(x, async_op=True)
work.wait()
dist.send(x, rank + 1) if rank % 2 == 0 else dist.recv(x, rank - 1)
dist.barrier()
""",
    "paddle": """
import paddle
import paddle.distributed as dist
dist.init_parallel_env()
rank, size = dist.get_rank(), dist.get_world_size()
pairs = [dist.new_group([first, first + 1]) for first in range(0, size, 2)]
pair = pairs[rank // 2]
x = paddle.ones([6, 4])
dist.broadcast(x, 1)
dist.all_reduce(x)
dist.all_reduce(x, op=dist.ReduceOp.MAX, group=pair)
dist.reduce(x, 2)
dist.all_gather([], x)
dist.reduce_scatter(paddle.empty([3]), [paddle.ones([3]) for _ in range(size)])
dist.alltoall([], [paddle.ones([2]) for _ in range(size)])
dist.scatter(paddle.empty([5]), [paddle.ones([5]) for _ in range(size)] if rank == 0 else None, 0)
work = dist.all_reduce(x, sync_op=False)
work.wait()
dist.send(x, rank + 1) if rank % 2 == 0 else dist.recv(x, rank - 1)
dist.barrier()
""",
    "mindspore": """
from mindspore import Tensor, mint, ops
import mindspore.mint.distributed as dist
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
pairs = [dist.new_group([first, first + 1]) for first in range(0, size, 2)]
pair = pairs[rank // 2]
x = mint.ones((6, 4))
dist.broadcast(x, 1)
dist.all_reduce(x)
dist.all_reduce(x, op="max", group=pair)
dist.reduce(x, 2)
dist.all_gather([mint.ones((6, 4)) for _ in range(size)], x)
dist.reduce_scatter(mint.ones(3), [mint.ones(3) for _ in range(size)])
dist.all_to_all([mint.ones(2) for _ in range(size)], [mint.ones(2) for _ in range(size)])
dist.scatter(mint.ones(5), [mint.ones(5) for _ in range(size)], 0)
work = dist.all_reduce(x, async_op=True)
work.wait()
dist.send(x, rank + 1) if rank % 2 == 0 else dist.recv(x, rank - 1)
dist.barrier()
""",
}


def test_all_frameworks_programs_make_the_same_calls(tmp_path: Path) -> None:
    of_torch, *of_others = (calls_of(one, tmp_path / one) for one in PROGRAMS)
    assert [len(calls) for calls in of_torch] == [11] * RANKS
    for calls in of_others:
        assert calls == of_torch


def calls_of(framework: str, folder: Path) -> list[list[str]]:
    """Return the calls of each rank of the *framework*'s program, rehearsed in *folder*."""
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(PROGRAMS[framework])
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "shim",
            "rehearse",
            "-n",
            str(RANKS),
            "--as-installed",
            "--to",
            str(folder / "calls"),
            str(program),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ranks = read_recording(folder / "calls").ranks
    return [
        [f"{call.shape.text()} of ranks {call.shape.group.ranks}" for call in one.calls if not call.shape.is_internal]
        for _, one in sorted(ranks.items())
    ]
