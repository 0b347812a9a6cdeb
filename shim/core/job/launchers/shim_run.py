"""`shim run`, and variables that were set by hand, which it sets too."""

from __future__ import annotations

from shim.core.job.launchers.launcher import (
    JobName,
    Launcher,
    hosts_counted_in,
    hosts_that_meet_at,
    key_of_port,
    ranks_elsewhere,
)
from shim.core.job.variables import Variables


class ShimRun(Launcher):
    """Its ranks do not inherit other launchers' variables (shim.launch.identity): where these are set, a rank started that launcher."""

    name = "shim run"
    level = 3
    signs = ("SHIM_RANK", "SHIM_WORLD_SIZE", "SHIM_JOB")
    rank = ("SHIM_RANK",)
    size = ("SHIM_WORLD_SIZE",)

    def key(self, variables: Variables) -> JobName:
        return JobName(variables.text("SHIM_JOB", ("SHIM_RANK", "SHIM_WORLD_SIZE")), is_unique=True)

    def several_hosts(self, variables: Variables) -> str:
        return hosts_counted_in(variables, "GROUP_WORLD_SIZE")


class ByHand(Launcher):
    name = "variables set by hand"
    level = 4
    signs = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    rank = ("RANK",)
    size = ("WORLD_SIZE",)

    def key(self, variables: Variables) -> JobName:
        key = key_of_port(variables)
        variables.text("MASTER_ADDR", ("MASTER_PORT",))
        return key

    def several_hosts(self, variables: Variables) -> str:
        local = ""
        if variables.get("SHIM_JOB") is None:  # else LOCAL_WORLD_SIZE is that of `shim run`, whose rank started others
            local = ranks_elsewhere(variables, "LOCAL_WORLD_SIZE", "WORLD_SIZE")
        return local or hosts_that_meet_at("MASTER_ADDR", variables)

    def say_more_than_one_rank(self, variables: Variables) -> bool:
        """Tell whether all that ranks need was set, for more than one of them."""
        return all(variables.get(name) for name in self.signs) and variables.get("WORLD_SIZE") != "1"

    def repeat_shim_run(self, variables: Variables) -> bool:
        """Tell whether it was `shim run` that set them."""
        return variables.repeat((("RANK", "SHIM_RANK"), ("WORLD_SIZE", "SHIM_WORLD_SIZE")))


BY_HAND = ByHand()
