"""srun, of Slurm."""

from __future__ import annotations

import zlib

from shim.core.job.hosts import first_of_list, joined
from shim.core.job.launchers.launcher import JobName, Launcher, hosts_counted_in
from shim.core.job.variables import Variables

_PORTS = range(20_000, 32_000)  # below those that Linux gives to whoever asks for any


class Srun(Launcher):
    name = "srun"
    level = 2
    signs = ("SLURM_STEP_ID",)
    rank = ("SLURM_PROCID",)
    size = ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS")
    local_rank = "SLURM_LOCALID"
    local_size = ""

    def key(self, variables: Variables) -> JobName:
        return JobName(f"step {_step(variables)}", is_unique=True)

    def several_hosts(self, variables: Variables) -> str:
        return hosts_counted_in(variables, "SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES")

    def address(self, variables: Variables) -> str:
        """Return the address that was set, else a port of the step's first host, on which rank 0 is, that is the same for all its ranks."""
        set_by_hand = super().address(variables)
        hosts = variables.first(("SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"))
        if set_by_hand or hosts is None:
            return set_by_hand
        port = _PORTS[zlib.crc32(_step(variables).encode()) % len(_PORTS)]
        return joined(first_of_list(variables.text(hosts)), port)


def _step(variables: Variables) -> str:
    return f"{variables.text('SLURM_JOB_ID', ('SLURM_STEP_ID',))}.{variables.text('SLURM_STEP_ID')}"
