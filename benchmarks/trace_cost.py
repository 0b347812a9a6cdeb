"""Time what recording adds to a call: an 8-byte all_reduce and a barrier in a world of one rank, which never waits.

    python3 benchmarks/trace_cost.py

Each figure is the shortest of several runs, in nanoseconds a call. The recordings go to a folder that is deleted.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

CALLS, REPEATS = 20_000, 9

PROGRAM = f"""
import sys, timeit
import numpy as np
import shim.frontends.torch.distributed as dist
dist.init_process_group(rank=0, world_size=1)
tensors = {{"a numpy array": np.zeros(1)}}
try:
    import torch
    tensors["a torch tensor"] = torch.zeros(1)
except ImportError:
    pass
def step(call):
    call()
cases = {{f"all_reduce of {{name}}": (lambda one=one: dist.all_reduce(one)) for name, one in tensors.items()}}
cases["all_reduce, started and waited for"] = lambda one=np.zeros(1): dist.all_reduce(one, async_op=True).wait()
cases["barrier"] = dist.barrier
for name, call in cases.items():
    print(name, min(timeit.repeat(call, number={CALLS}, repeat={REPEATS})) / {CALLS} * 1e9, sep="\\t")
"""


def main() -> None:
    plain = measured({})
    with tempfile.TemporaryDirectory() as folder:
        recorded = measured({"SHIM_TRACE": folder})
    with tempfile.TemporaryDirectory() as folder:
        digested = measured({"SHIM_TRACE": folder, "SHIM_TRACE_DIGESTS": "1"})
    print(f"{'nanoseconds a call':<40}{'untraced':>10}{'recorded':>10}{'added':>10}{'digests':>10}")
    for name, before in plain.items():
        added = recorded[name] - before
        print(f"{name:<40}{before:>10.0f}{recorded[name]:>10.0f}{added:>10.0f}{digested[name] - before:>10.0f}")


def measured(variables: dict[str, str]) -> dict[str, float]:
    import os

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True, check=True
    )
    return {name: float(figure) for name, figure in (line.split("\t") for line in done.stdout.splitlines())}


if __name__ == "__main__":
    main()
