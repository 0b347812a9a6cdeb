"""Time an 8-byte all_reduce of 2 ranks: through the torch frontend, beside gloo and OpenMPI in the same processes.

    python3 -m pip install '.[bench]'
    python3 benchmarks/all_reduce_latency.py [--json FILE]

The two ranks are started by mpirun, unbound, and take turns between the libraries: in each round every library does
the same number of calls, and the input is rewritten before each. A call's time is that of the slower rank; printed is the
median over rounds, in microseconds, and the ratio to ours. ``engine`` is the native engine without a frontend, and
``no call`` the loop with the rewriting alone: the floor of what is measured here.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROUNDS = 15
CALLS = 400
WARM_UP = 50
RANKS = 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    mpirun = shutil.which("mpirun", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if mpirun is None:
        sys.exit("mpirun was not found: python3 -m pip install 'shim-collectives[bench]' brings OpenMPI")
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        command = [mpirun, "-n", str(RANKS), "--bind-to", "none", "--allow-run-as-root", sys.executable, __file__]
        environment = {**os.environ, "SHIM_BENCHMARK_OUTPUT": str(figures), "OMP_NUM_THREADS": "1"}
        subprocess.run(command, env=environment, check=True, timeout=300)
        medians: dict[str, float] = json.loads(figures.read_text())
    print(f"8-byte all_reduce, {RANKS} ranks, median of {ROUNDS} rounds of {CALLS} calls, slower rank")
    for name, microseconds in medians.items():
        print(f"  {name:<24}{microseconds:10.2f} us{microseconds / medians['shim, torch frontend']:10.1f} x")
    if arguments.json:
        arguments.json.write_text(json.dumps(medians, indent=2) + "\n")
    return 0


def measure() -> None:
    """Run as one rank under mpirun."""
    import numpy as np
    import torch
    import torch.distributed as gloo
    from mpi4py import MPI

    import shim.frontends.torch.distributed as dist
    from shim.core import groups
    from shim.core.callers import Caller
    from shim.core.reduce_ops import ReduceOp

    world = MPI.COMM_WORLD
    rank = world.Get_rank()
    dist.init_process_group()
    with tempfile.TemporaryDirectory() as folder:
        store = world.bcast(f"file://{folder}/store", root=0)
        gloo.init_process_group("gloo", init_method=store, rank=rank, world_size=RANKS)
        world.Barrier()
    engine = groups.world(Caller("benchmark")).engine

    tensor = torch.zeros(1, dtype=torch.float64)
    array = tensor.numpy()
    result = np.zeros(1)

    def call_shim() -> None:
        dist.all_reduce(tensor)

    def call_engine() -> None:
        engine.all_reduce(array, array, ReduceOp.SUM, 1.0).wait()

    def call_gloo() -> None:
        gloo.all_reduce(tensor)

    def call_mpi() -> None:
        world.Allreduce(array, result)
        array[0] = result[0]

    def no_call() -> None:
        pass

    calls: dict[str, Callable[[], None]] = {
        "shim, torch frontend": call_shim,
        "shim, engine": call_engine,
        "gloo (torch)": call_gloo,
        "OpenMPI (mpi4py)": call_mpi,
        "no call": no_call,
    }

    def seconds_of(call: Callable[[], None], times: int) -> float:
        world.Barrier()
        start = time.perf_counter()
        for i in range(times):
            array[0] = rank + i
            call()
        elapsed = time.perf_counter() - start
        if call is not no_call and array[0] != 2 * (times - 1) + 1:
            raise AssertionError(f"rank {rank}: wrong sum {array[0]} from {call.__name__}")
        return elapsed / times

    for call in calls.values():
        seconds_of(call, WARM_UP)
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            samples[name].append(world.allreduce(seconds_of(call, CALLS), op=MPI.MAX))
    if rank == 0:
        medians = {name: statistics.median(times) * 1e6 for name, times in samples.items()}
        Path(os.environ["SHIM_BENCHMARK_OUTPUT"]).write_text(json.dumps(medians))
    gloo.destroy_process_group()
    dist.destroy_process_group()


if __name__ == "__main__":
    if "SHIM_BENCHMARK_OUTPUT" in os.environ:
        measure()
    else:
        sys.exit(main())
