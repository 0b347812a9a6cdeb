"""The launchers that are known, each by the variables in which it tells a process who it is.

A launcher may have been started by another one (srun starts torchrun, torchrun starts the ranks), so that a process
sees the variables of both. Those of the inner one count: a framework's launcher comes before MPI's, that before
Slurm's, and what was set by hand comes last. What this order does not decide is an error.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shim.core.job.hosts import first_of_list, joined, several_may_meet_at
from shim.core.job.variables import Variables, checked_port
from shim.errors import StateError

_BY_HAND = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_HYDRA_PROXY = "hydra_pmi_proxy"  # as long as a process's name can be
_SLURM_PORTS = range(20_000, 32_000)  # below those that Linux gives to whoever asks for any


@dataclass(frozen=True)
class JobName:
    """What a job's ranks call it. ``is_unique`` where no other job on the host can have the name, as another can use the same port."""

    text: str
    is_unique: bool


def _master_address(variables: Variables) -> str:
    return _pair(variables, "MASTER_ADDR", "MASTER_PORT")


def _pair(variables: Variables, host: str, port: str) -> str:
    """Return the address of which *host* and *port* are the variables; nothing unless both are set."""
    texts = variables.get(host), variables.get(port)
    return joined(texts[0], texts[1]) if texts[0] and texts[1] else ""


@dataclass(frozen=True)
class Launcher:
    """A way of starting ranks.

    Any of ``signs`` in the environment shows that it was used. ``rank`` and ``size`` are the variables that hold those,
    the first that is set counts. ``local_rank`` and ``local_size`` may hold its number among those of its host, and how many these
    are. ``key`` returns a name for the job, the same on all its ranks and hosts; ``several_hosts`` what shows that they are on several
    hosts, or nothing; ``address`` where ranks of several hosts can meet, or nothing. A lower ``level`` is an inner launcher.
    ``is_repeated`` tells whether it was `shim run` that set its signs, for programs that read them.
    """

    name: str
    level: int
    signs: tuple[str, ...]
    rank: tuple[str, ...]
    size: tuple[str, ...]
    key: Callable[[Variables], JobName]
    several_hosts: Callable[[Variables], str]
    is_repeated: Callable[[Variables], bool] = lambda variables: False
    local_rank: str = "LOCAL_RANK"
    local_size: str = "LOCAL_WORLD_SIZE"
    address: Callable[[Variables], str] = _master_address

    def was_used(self, variables: Variables) -> bool:
        return variables.first(self.signs) is not None and not self.is_repeated(variables)

    def number(self, variables: Variables, names: tuple[str, ...]) -> int:
        """Return this process's rank or size, whichever *names* hold. Raises StateError where none is set."""
        name = variables.first(names) or names[0]
        return variables.number(name, tuple(dict.fromkeys((*self.signs, *self.rank, *self.size))))


def _shim_key(variables: Variables) -> JobName:
    return JobName(variables.text("SHIM_JOB", ("SHIM_RANK", "SHIM_WORLD_SIZE")), is_unique=True)


def _torchrun_key(variables: Variables) -> JobName:
    run, restart = variables.text("TORCHELASTIC_RUN_ID"), variables.get("TORCHELASTIC_RESTART_COUNT") or "0"
    if _at_most_one("GROUP_WORLD_SIZE")(variables):
        restart = (
            "any"  # each host counts the failures of its own ranks; all ranks have ended before any is started again
        )
    # The run is "none" unless one names it, but torchrun itself listens at the port.
    return JobName(f"{run} restart {restart} port {variables.get('MASTER_PORT')}", is_unique=True)


def _paddle_key(variables: Variables) -> JobName:
    endpoints = paddle_endpoints(variables)
    if endpoints:
        return JobName(f"endpoints {endpoints}", is_unique=False)
    if variables.get("PADDLE_MASTER"):
        return JobName(f"paddle master {variables.get('PADDLE_MASTER')}", is_unique=False)
    if variables.get("MASTER_PORT"):
        return _port_key(variables)
    raise StateError(
        f"PADDLE_TRAINER_ENDPOINTS and PADDLE_MASTER are not set, while "
        f"{variables.shown(('PADDLE_TRAINER_ID', 'PADDLE_TRAINERS_NUM'))}\n"
        "Set one of them, the same on every rank."
    )


def paddle_endpoints(variables: Variables) -> str | None:
    """Return the ranks' addresses, which the launcher moves to a file where they are long."""
    endpoints, file = variables.get("PADDLE_TRAINER_ENDPOINTS"), variables.get("PADDLE_BACKUP_ENV_PATH")
    if endpoints is None and file is not None and Path(file).is_file():
        endpoints = json.loads(Path(file).read_text(encoding="utf-8")).get("PADDLE_TRAINER_ENDPOINTS")
    return endpoints


def _paddle_address(variables: Variables) -> str:
    """Return rank 0's endpoint; the launcher's own address is that of any host."""
    endpoints = paddle_endpoints(variables) or ""
    return endpoints.partition(",")[0] or variables.get("PADDLE_MASTER") or ""


def _msrun_key(variables: Variables) -> JobName:
    port = variables.text("MS_SCHED_PORT", ("MS_ROLE", "MS_WORKER_NUM"))
    if variables.get("MS_NODE_ID") is None and _msrun_hosts(variables):
        # It leaves the ranks to MindSpore then, and RANK_ID=0, of its scheduler, to all workers beside that.
        raise StateError(
            f"MS_NODE_ID is not set, so that nobody knows the ranks of the workers on several hosts ({_msrun_hosts(variables)})\n"
            "Start msrun with --node_rank on each host: 0 on the one of --master_addr."
        )
    return JobName(f"scheduler port {checked_port('MS_SCHED_PORT', port)}", is_unique=False)


def _open_mpi_key(variables: Variables) -> JobName:
    namespace = variables.get("PMIX_NAMESPACE") or variables.get("OMPI_MCA_ess_base_jobid")
    if namespace:
        return JobName(f"namespace {namespace}", is_unique=True)
    return _port_key(variables, "PMIX_NAMESPACE, and MASTER_PORT in its place,")


def _hydra_key(variables: Variables) -> JobName:
    if variables.get("MASTER_PORT"):
        return _port_key(variables)
    proxy = _hydra_proxy()
    name = None if proxy is None else proxy[0]
    if _all_are_local("MPI_LOCALNRANKS", "PMI_SIZE")(variables):
        name = None if proxy is None else proxy[1]
    if name is None:
        raise StateError(
            "PMI_RANK and PMI_SIZE are set, and nothing names the job: no hydra_pmi_proxy started this process, and "
            "MASTER_PORT is not set\nSet MASTER_ADDR and MASTER_PORT, the same on every rank."
        )
    return JobName(f"hydra {name}", is_unique=True)


def _hydra_proxy() -> tuple[str, str | None] | None:
    """Return what names the process that starts all of a job's ranks on a host, there and on all hosts of the job; None where there is none.

    MPICH and Intel MPI leave no name of the job in the environment. On its host the process is known by its id and when it began. All of a job
    have been told where mpiexec listens to them; the second is None where they were told otherwise.
    """
    process = "self"
    while process != "0":
        try:
            line = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
            command = Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
        except OSError:
            return None
        name = line[line.index("(") + 1 : line.rindex(")")]
        fields = line[line.rindex(")") + 2 :].split()  # from the third field of proc(5) on
        if name == _HYDRA_PROXY:
            at = command.index("--control-port") if "--control-port" in command else -1
            return f"{line.split()[0]} {fields[19]}", command[at + 1] if at >= 0 else None
        process = fields[1]
    return None


def _slurm_key(variables: Variables) -> JobName:
    return JobName(f"step {_slurm_step(variables)}", is_unique=True)


def _slurm_step(variables: Variables) -> str:
    return f"{variables.text('SLURM_JOB_ID', ('SLURM_STEP_ID',))}.{variables.text('SLURM_STEP_ID')}"


def _slurm_address(variables: Variables) -> str:
    """Return the address that was set, else a port of the step's first host, on which rank 0 is, that is the same for all its ranks."""
    set_by_hand = _master_address(variables)
    hosts = variables.first(("SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"))
    if set_by_hand or hosts is None:
        return set_by_hand
    port = _SLURM_PORTS[zlib.crc32(_slurm_step(variables).encode()) % len(_SLURM_PORTS)]
    return joined(first_of_list(variables.text(hosts)), port)


def _port_key(variables: Variables, name: str = "MASTER_PORT") -> JobName:
    port = variables.get("MASTER_PORT")
    if port is None:
        there = variables.shown(("RANK", "WORLD_SIZE"))
        raise StateError(
            f"{name} is not set, so that the ranks cannot find each other ({there})\n"
            "Set MASTER_ADDR to this host and MASTER_PORT to a number that no other job uses, or start with `shim run`."
        )
    return JobName(f"port {checked_port('MASTER_PORT', port)}", is_unique=False)


def _by_hand_key(variables: Variables) -> JobName:
    key = _port_key(variables)
    variables.text("MASTER_ADDR", ("MASTER_PORT",))
    return key


def _at_most_one(*names: str) -> Callable[[Variables], str]:
    """Return what tells of several hosts where the first of *names* that is set, a number of hosts, is more than 1."""

    def evidence(variables: Variables) -> str:
        name = variables.first(names)
        return variables.shown((name,)) if name is not None and variables.number(name) > 1 else ""

    return evidence


def _all_are_local(local: str, *sizes: str) -> Callable[[Variables], str]:
    """Return what tells of several hosts where the number of ranks on this host, *local*, is less than that of all, the first of *sizes*."""

    def evidence(variables: Variables) -> str:
        size = variables.first(sizes)
        if size is None or not variables.get(local) or variables.number(local) >= variables.number(size):
            return ""
        return variables.shown((local, size))

    return evidence


def _paddle_hosts(variables: Variables) -> str:
    endpoints = paddle_endpoints(variables) or ""
    hosts = {endpoint.rpartition(":")[0] for endpoint in endpoints.split(",")}
    return _at_most_one("PADDLE_NNODES")(variables) or (
        f"PADDLE_TRAINER_ENDPOINTS={endpoints}" if len(hosts) > 1 else ""
    )


def _msrun_hosts(variables: Variables) -> str:
    return _hosts_that_meet_at("MS_SCHED_HOST", variables)


def _by_hand_hosts(variables: Variables) -> str:
    local = ""
    if variables.get("SHIM_JOB") is None:  # else LOCAL_WORLD_SIZE is that of `shim run`, whose rank started others
        local = _all_are_local("LOCAL_WORLD_SIZE", "WORLD_SIZE")(variables)
    return local or _hosts_that_meet_at("MASTER_ADDR", variables)


def _hosts_that_meet_at(name: str, variables: Variables) -> str:
    host = variables.get(name)
    return several_may_meet_at(name, host, variables.get("SHIM_SECRET")) if host else ""


def _is_run_of_shim(variables: Variables) -> bool:
    job = variables.get("SHIM_JOB") or ""
    return variables.get("TORCHELASTIC_RUN_ID") == job.partition(".")[0]


def _are_variables_of_shim(variables: Variables) -> bool:
    pairs = (
        ("PADDLE_TRAINER_ID", "SHIM_RANK"),
        ("PADDLE_TRAINERS_NUM", "SHIM_WORLD_SIZE"),
        ("PADDLE_TRAINER_ENDPOINTS", "SHIM_ENDPOINTS"),
    )
    return all(variables.get(ours) and variables.get(name) == variables.get(ours) for name, ours in pairs)


BY_HAND = Launcher("variables set by hand", 4, _BY_HAND, ("RANK",), ("WORLD_SIZE",), _by_hand_key, _by_hand_hosts)

LAUNCHERS = (
    Launcher(
        "torchrun",
        0,
        ("TORCHELASTIC_RUN_ID",),
        ("RANK",),
        ("WORLD_SIZE",),
        _torchrun_key,
        _at_most_one("GROUP_WORLD_SIZE"),
        _is_run_of_shim,
    ),
    Launcher(
        "paddle.distributed.launch",
        0,
        ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"),
        ("PADDLE_TRAINER_ID",),
        ("PADDLE_TRAINERS_NUM",),
        _paddle_key,
        _paddle_hosts,
        _are_variables_of_shim,
        "PADDLE_LOCAL_RANK",
        "PADDLE_LOCAL_SIZE",
        _paddle_address,
    ),
    Launcher(
        "msrun",
        0,
        ("MS_ROLE",),
        ("RANK_ID", "MS_NODE_ID"),
        ("MS_WORKER_NUM",),
        _msrun_key,
        _msrun_hosts,
        address=lambda variables: _pair(variables, "MS_SCHED_HOST", "MS_SCHED_PORT"),
    ),
    Launcher(
        "Open MPI",
        1,
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("OMPI_COMM_WORLD_RANK",),
        ("OMPI_COMM_WORLD_SIZE",),
        _open_mpi_key,
        _all_are_local("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"),
        local_rank="OMPI_COMM_WORLD_LOCAL_RANK",
        local_size="OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    Launcher(
        "MPICH or Intel MPI",
        1,
        ("MPI_LOCALNRANKS", "MPI_LOCALRANKID"),
        ("PMI_RANK",),
        ("PMI_SIZE",),
        _hydra_key,
        _all_are_local("MPI_LOCALNRANKS", "PMI_SIZE"),
        local_rank="MPI_LOCALRANKID",
        local_size="MPI_LOCALNRANKS",
    ),
    Launcher(
        "srun",
        2,
        ("SLURM_STEP_ID",),
        ("SLURM_PROCID",),
        ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"),
        _slurm_key,
        _at_most_one("SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
        local_rank="SLURM_LOCALID",
        local_size="",
        address=_slurm_address,
    ),
    # Its ranks do not inherit the variables of the launchers above (shim.launch.identity), so that where these are
    # set, the launcher was started by a rank.
    Launcher(
        "shim run",
        3,
        ("SHIM_RANK", "SHIM_WORLD_SIZE", "SHIM_JOB"),
        ("SHIM_RANK",),
        ("SHIM_WORLD_SIZE",),
        _shim_key,
        _at_most_one("GROUP_WORLD_SIZE"),
    ),
    BY_HAND,
)
"""In the order in which they count."""
