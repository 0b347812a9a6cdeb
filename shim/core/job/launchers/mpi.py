"""mpirun and mpiexec of Open MPI, MPICH and Intel MPI."""

from __future__ import annotations

from pathlib import Path

from shim.core.job.launchers.launcher import JobName, Launcher, key_of_port, ranks_elsewhere
from shim.core.job.variables import Variables
from shim.errors import StateError

_HYDRA_PROXY = "hydra_pmi_proxy"  # as long as a process's name can be


class OpenMpi(Launcher):
    name = "Open MPI"
    level = 1
    signs = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
    rank = ("OMPI_COMM_WORLD_RANK",)
    size = ("OMPI_COMM_WORLD_SIZE",)
    local_rank = "OMPI_COMM_WORLD_LOCAL_RANK"
    local_size = "OMPI_COMM_WORLD_LOCAL_SIZE"

    def key(self, variables: Variables) -> JobName:
        namespace = variables.get("PMIX_NAMESPACE") or variables.get("OMPI_MCA_ess_base_jobid")
        if namespace:
            return JobName(f"namespace {namespace}", is_unique=True)
        return key_of_port(variables, "PMIX_NAMESPACE, and MASTER_PORT in its place,")

    def several_hosts(self, variables: Variables) -> str:
        return ranks_elsewhere(variables, "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE")


class Hydra(Launcher):
    name = "MPICH or Intel MPI"
    level = 1
    signs = ("MPI_LOCALNRANKS", "MPI_LOCALRANKID")
    rank = ("PMI_RANK",)
    size = ("PMI_SIZE",)
    local_rank = "MPI_LOCALRANKID"
    local_size = "MPI_LOCALNRANKS"

    def key(self, variables: Variables) -> JobName:
        if variables.get("MASTER_PORT"):
            return key_of_port(variables)
        proxy = _hydra_proxy()
        name = None if proxy is None else proxy[0]
        if self.several_hosts(variables):
            name = None if proxy is None else proxy[1]
        if name is None:
            raise StateError(
                "PMI_RANK and PMI_SIZE are set, and nothing names the job: no hydra_pmi_proxy started this process, and "
                "MASTER_PORT is not set\nSet MASTER_ADDR and MASTER_PORT, the same on every rank."
            )
        return JobName(f"hydra {name}", is_unique=True)

    def several_hosts(self, variables: Variables) -> str:
        return ranks_elsewhere(variables, "MPI_LOCALNRANKS", "PMI_SIZE")


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
