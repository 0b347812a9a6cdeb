"""What collectives cost on processors: the engine, torch's gloo and Open MPI, in turns in the same processes.

``measure`` starts the ranks, by mpiexec where Open MPI and mpi4py are there. Each of them is this program, on processors
of its own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import shim.frontends.torch.distributed as ours
from shim.bench.cases import size_text
from shim.bench.machine import bind_to_share
from shim.bench.ranks.launchers import find_mpi, mpi_options

if TYPE_CHECKING:
    from findings import Findings

_SIZES = (8, 1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20)  # bytes
_DTYPES = {"float32": 4, "bfloat16": 2}
_RANKS = (2, 4, 8)
_FEW_PROCESSORS = 4
_MOST_BYTES = 64 << 20  # of a rank's largest tensor
_BEGINNING = 5.0  # seconds for the ranks to start
_RANK_VARIABLES = (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SHIM_RANK", "SHIM_WORLD_SIZE"))
Call = Callable[[], object]


def measure(findings: Findings, seconds: float) -> None:
    """Measure with 2, 4 and 8 ranks, or 2 and small tensors where there are few processors.

    The figures are medians, in microseconds, of the slowest rank.
    """
    processors = len(os.sched_getaffinity(0))
    is_small = processors <= _FEW_PROCESSORS
    counts = [2] if is_small else [ranks for ranks in _RANKS if ranks <= processors]
    until = time.monotonic() + seconds - 4.0
    mpi: Any = find_mpi("openmpi", {}) if importlib.util.find_spec("mpi4py") else "mpi4py is not installed"
    findings.found["Open MPI"] = mpi if isinstance(mpi, str) else mpi.launcher
    for place, ranks in enumerate(counts):
        share = (until - time.monotonic()) / (len(counts) - place)
        with findings.case(f"{ranks} ranks"), tempfile.TemporaryDirectory() as folder:
            arguments = [__file__, folder, str(max(1.0, share - _BEGINNING)), str(4 if is_small else len(_SIZES))]
            done = _run(mpi, ranks, processors, arguments, share)
            if done.returncode and not isinstance(mpi, str):
                findings.found["Open MPI"] = mpi = f"{mpi.launcher} failed: {done.stdout.strip()[-300:]}"
                done = _run(mpi, ranks, processors, arguments, share)
            assert done.returncode == 0, done.stdout
            findings.figures[f"{ranks} ranks"] = json.loads(Path(folder, "medians.json").read_text())


def _run(
    mpi: Any, ranks: int, processors: int, arguments: Sequence[str], seconds: float
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shim", "run", "-n", str(ranks), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if not isinstance(mpi, str):
        options, _ = mpi_options("openmpi", ranks, processors, tuned=False)
        command = [mpi.launcher, "-n", str(ranks), *options, "--bind-to", "none", sys.executable, *arguments]
        folders = [folder for folder in (mpi.libraries, environment.get("LD_LIBRARY_PATH")) if folder]
        environment |= {"MPI4PY_MPIABI": "openmpi", "LD_LIBRARY_PATH": os.pathsep.join(folders)}
    return subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=max(seconds, _BEGINNING),
        check=False,
    )


class _Gloo:
    """torch's functions, on gloo."""

    def __init__(self, folder: str, rank: int, size: int) -> None:
        import torch.distributed as theirs

        self.dist: Any = theirs
        theirs.init_process_group("gloo", init_method=f"file://{folder}/gloo", rank=rank, world_size=size)

    def call(self, collective: str, tensor: Any, output: Any) -> Call:
        if collective == "all_reduce":
            return lambda: self.dist.all_reduce(tensor)
        if collective == "all_gather":
            return lambda: self.dist.all_gather_into_tensor(output, tensor)
        return lambda: self.dist.broadcast(tensor, 0)


class _Engine(_Gloo):
    """The frontend's functions, on the engine."""

    def __init__(self) -> None:
        self.dist = ours
        ours.init_process_group()


class _Mpi:
    """mpi4py's calls with buffers."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self._mpi: Any = MPI
        self._world: Any = MPI.COMM_WORLD

    def call(self, collective: str, tensor: Any, output: Any) -> Call | None:
        array, gathered = (self._array(one) for one in (tensor, output))
        kind = self._mpi.BFLOAT16_T if tensor.element_size() == 2 else self._mpi.FLOAT
        if collective == "all_reduce":
            return (
                None
                if kind == self._mpi.DATATYPE_NULL
                else lambda: self._world.Allreduce(self._mpi.IN_PLACE, [array, kind])
            )
        if collective == "all_gather":
            return lambda: self._world.Allgather(array, gathered)
        return lambda: self._world.Bcast(array, 0)

    @staticmethod
    def _array(tensor: Any) -> Any:
        import torch

        return tensor.view(torch.int16).numpy() if tensor.element_size() == 2 else tensor.numpy()


def be_a_rank(folder: str, seconds: float, sizes: int) -> None:
    """Take turns for *seconds* with so many of the sizes; rank 0 writes the medians to *folder*."""
    names = next(names for names in _RANK_VARIABLES if names[0] in os.environ)
    rank, size = (int(os.environ[name]) for name in names)
    bind_to_share(rank, size)  # before torch has threads, which inherit it
    import torch

    torch.set_num_threads(1)
    libraries: dict[str, Any] = {"shim": _Engine(), "gloo": _Gloo(folder, rank, size)}
    if names == _RANK_VARIABLES[0]:
        libraries["Open MPI"] = _Mpi()
    until, medians, left_out = time.monotonic() + seconds, {}, 0
    for bytes_ in _SIZES[:sizes]:
        for dtype, width in _DTYPES.items():
            for collective in ("all_reduce", "all_gather", "broadcast"):
                given = min(bytes_, _MOST_BYTES // size) if collective == "all_gather" else bytes_
                if _largest([float(time.monotonic() > until)])[0]:
                    left_out += 1
                    continue
                tensor = torch.full((given // width,), rank + 1.0, dtype=getattr(torch, dtype))
                output = torch.zeros(tensor.numel() * (size if collective == "all_gather" else 1), dtype=tensor.dtype)
                told = _medians(libraries, collective, tensor, output, rank, size)
                medians[f"{collective} of {size_text(given)} {dtype}"] = told
    ours.barrier()
    if rank == 0:
        cases: dict[str, Any] = {"microseconds": medians, "cases for which there was no time": left_out}
        Path(folder, "medians.json").write_text(json.dumps(cases))
    ours.destroy_process_group()
    libraries["gloo"].dist.destroy_process_group()


def _medians(
    libraries: dict[str, Any], collective: str, tensor: Any, output: Any, rank: int, size: int
) -> dict[str, float]:
    """Check what each library makes of the tensors, and return the median of its times."""
    made = {name: library.call(collective, tensor, output) for name, library in libraries.items()}
    calls: dict[str, Call] = {name: call for name, call in made.items() if call is not None}
    for name, call in calls.items():
        tensor.fill_(rank + 1.0)
        call()
        _check(name, collective, tensor, output, size)
    tensor.zero_()  # which stays so, however often it is summed
    given = tensor.numel() * tensor.element_size()
    times, rounds = (
        (50, 7) if given <= 4 << 10 else (10, 5) if given <= 256 << 10 else (2, 5) if given <= 4 << 20 else (1, 3)
    )
    seen: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    for _ in range(rounds):
        order = order[1:] + order[:1]
        for name in order:
            call = calls[name]
            call()
            ours.barrier()
            began = time.perf_counter()
            for _ in range(times):
                call()
            seen[name].append((time.perf_counter() - began) / times * 1e6)
    return {name: round(float(np.median(_largest(seen[name]))), 2) for name in calls}


def _check(name: str, collective: str, tensor: Any, output: Any, size: int) -> None:
    if collective == "all_gather":
        is_right = all(bool((part == rank + 1.0).all()) for rank, part in enumerate(output.chunk(size)))
    else:
        is_right = bool((tensor == (size * (size + 1) / 2 if collective == "all_reduce" else 1.0)).all())
    assert is_right, f"the {collective} of {name} is wrong"


def _largest(figures: list[float]) -> list[float]:
    """Return each figure of the rank where it is the largest."""
    import torch

    found = torch.tensor(figures)
    ours.all_reduce(found, ours.ReduceOp.MAX)
    return [float(one) for one in found]


if __name__ == "__main__":
    be_a_rank(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
