"""Time an 8-byte all_reduce of 2 ranks through every frontend, beside the bare engine, in the same processes.

    python3 -m pip install '.[test]'
    shim run -n 2 benchmarks/frontend_overhead.py

Each frontend is called with its own framework's tensor and with a numpy array. The frontends take turns: in each round
everyone does the same number of calls. A call's time is that of the slower rank; printed is the median over rounds, in
microseconds, and the ratio to the torch frontend with torch's tensor. Its call in a group of one rank shows what Python and
the border to C++ cost alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import mindspore
import mindspore.ops as _mindspore_ops  # noqa: F401  # before paddle, whose libraries it cannot follow
import numpy as np
import paddle
import torch

import shim.frontends.mindspore.ops as ms_ops
import shim.frontends.paddle_2.distributed as paddle_2
import shim.frontends.paddle_3.distributed as paddle_3
import shim.frontends.torch.distributed as dist
from shim.core import groups
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp
from shim.frontends.mindspore.communication import comm_func, init
from shim.frontends.mindspore.mint import distributed as mint

ROUNDS = 25
CALLS = 400
REFERENCE = "torch frontend, torch tensor"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    dist.init_process_group()
    paddle_2.init_parallel_env()
    paddle_3.init_parallel_env()
    init()
    alone = [dist.new_group([rank]) for rank in range(dist.get_world_size())][dist.get_rank()]
    calls = contenders(alone)
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        mean_seconds(call)
    for _ in range(ROUNDS):
        for name, call in calls.items():
            seconds[name].append(mean_seconds(call))
    figures = {name: statistics.median(slower(samples)) * 1e6 for name, samples in seconds.items()}
    if dist.get_rank() == 0:
        print(
            f"8-byte all_reduce, {dist.get_world_size()} ranks, median of {ROUNDS} rounds of {CALLS} calls, slower rank"
        )
        for name, microseconds in figures.items():
            print(f"  {name:<40}{microseconds:8.2f} us{microseconds / figures[REFERENCE]:8.2f} x")
        if arguments.json:
            arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    dist.destroy_process_group()


def contenders(alone: dist.ProcessGroup) -> dict[str, Callable[[], object]]:
    engine = groups.world(Caller("benchmark")).engine
    op, array = ReduceOp.SUM, np.zeros(1)  # looking up a member of an enumeration takes longer than a barrier
    of_torch = torch.zeros(1, dtype=torch.float64)
    of_paddle = paddle.zeros([1], dtype="float64")
    of_mindspore = mindspore.Tensor(np.zeros(1))
    primitive = ms_ops.AllReduce()
    return {
        "engine, numpy": lambda: engine.all_reduce(array, array, op, 1.0, True),
        REFERENCE: lambda: dist.all_reduce(of_torch),
        "torch frontend, numpy": lambda: dist.all_reduce(array),
        "the same in a group of one rank": lambda: dist.all_reduce(of_torch, group=alone),
        "paddle_3 frontend, paddle tensor": lambda: paddle_3.all_reduce(of_paddle),
        "paddle_3 frontend, numpy": lambda: paddle_3.all_reduce(array),
        "paddle_2 frontend, numpy": lambda: paddle_2.all_reduce(array),
        "mint frontend, numpy": lambda: mint.all_reduce(array),
        "mint frontend, mindspore tensor": lambda: mint.all_reduce(of_mindspore),
        "comm_func, numpy": lambda: comm_func.all_reduce(array),
        "comm_func, mindspore tensor": lambda: comm_func.all_reduce(of_mindspore),
        "AllReduce primitive, numpy": lambda: primitive(array),
        "AllReduce primitive, mindspore tensor": lambda: primitive(of_mindspore),
    }


def mean_seconds(call: Callable[[], object]) -> float:
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - begin) / CALLS


def slower(samples: list[float]) -> list[float]:
    times = torch.tensor(samples, dtype=torch.float64)
    dist.all_reduce(times, dist.ReduceOp.MAX)
    return [float(seconds) for seconds in times]


if __name__ == "__main__":
    main()
