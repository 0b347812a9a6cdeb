"""torchrun, and what starts ranks as it does."""

from __future__ import annotations

from shim.core.job.launchers.launcher import JobName, Launcher, hosts_counted_in
from shim.core.job.variables import Variables


class Torchrun(Launcher):
    name = "torchrun"
    level = 0
    signs = ("TORCHELASTIC_RUN_ID",)
    rank = ("RANK",)
    size = ("WORLD_SIZE",)

    def is_repeated(self, variables: Variables) -> bool:
        job = variables.get("SHIM_JOB") or ""
        return variables.get("TORCHELASTIC_RUN_ID") == job.partition(".")[0]

    def key(self, variables: Variables) -> JobName:
        run, restart = variables.text("TORCHELASTIC_RUN_ID"), variables.get("TORCHELASTIC_RESTART_COUNT") or "0"
        if self.several_hosts(variables):
            # Each host counts the failures of its own ranks; all ranks have ended before any is started again.
            restart = "any"
        # The run is "none" unless one names it, but torchrun itself listens at the port.
        return JobName(f"{run} restart {restart} port {variables.get('MASTER_PORT')}", is_unique=True)

    def several_hosts(self, variables: Variables) -> str:
        return hosts_counted_in(variables, "GROUP_WORLD_SIZE")
