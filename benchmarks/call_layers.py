"""Time the layers of one 8-byte all_reduce, from the native engine up to each frontend, in a world of one rank.

    python3 -m pip install '.[test]'
    python3 benchmarks/call_layers.py [--json FILE]

Nothing is waited for: what is left is what a call costs in Python and at the border to C++. Each line is the shortest of
several runs, in nanoseconds a call, and contains the lines above it that it is built on.
"""

from __future__ import annotations

import argparse
import json
import timeit
from collections.abc import Callable
from pathlib import Path

import mindspore
import numpy as np
import paddle
import torch

import shim.frontends.mindspore.communication as ms
import shim.frontends.paddle_3.distributed as paddle_3
import shim.frontends.torch.distributed as dist
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp
from shim.frontends.mindspore.mint import distributed as mint

CALLS = 20_000
REPEATS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    dist.init_process_group(rank=0, world_size=1)
    paddle_3.init_parallel_env()
    ms.init()
    figures = {name: min(timeit.repeat(call, number=CALLS, repeat=REPEATS)) / CALLS * 1e9 for name, call in layers()}
    for name, nanoseconds in figures.items():
        print(f"{name:<64}{nanoseconds:8.0f} ns")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    dist.destroy_process_group()


def layers() -> list[tuple[str, Callable[[], object]]]:
    caller = Caller("benchmark")
    group = groups.world(caller)
    engine = group.engine
    op = ReduceOp.SUM
    array, of_torch = np.zeros(1), torch.zeros(1, dtype=torch.float64)
    of_paddle, of_mindspore = paddle.zeros([1], dtype="float64"), mindspore.Tensor(np.zeros(1))
    return [
        ("an empty function", lambda: None),
        ("engine: barrier", lambda: engine.barrier(True)),
        ("engine: all_reduce of a numpy array", lambda: engine.all_reduce(array, array, op, 1.0, True)),
        ("  of a torch tensor", lambda: engine.all_reduce(of_torch, of_torch, op, 1.0, True)),
        ("  of a paddle tensor", lambda: engine.all_reduce(of_paddle, of_paddle, op, 1.0, True)),
        ("  of a mindspore tensor", lambda: engine.all_reduce(of_mindspore, of_mindspore, op, 1.0, True)),
        ("core's call, torch tensor", lambda: calls.all_reduce(caller, group, of_torch, of_torch, op, 1.0, True)),
        (
            "core's call and Work, prepared first and then waited for",
            lambda: calls.all_reduce(caller, group, of_torch, of_torch, op).wait(),
        ),
        ("torch frontend, torch tensor", lambda: dist.all_reduce(of_torch)),
        ("paddle_3 frontend, paddle tensor", lambda: paddle_3.all_reduce(of_paddle)),
        ("mint frontend, mindspore tensor", lambda: mint.all_reduce(of_mindspore)),
        ("mint frontend, numpy array", lambda: mint.all_reduce(array)),
    ]


if __name__ == "__main__":
    main()
