"""msrun, of MindSpore."""

from __future__ import annotations

from shim.core.job.launchers.launcher import JobName, Launcher, address_in, hosts_that_meet_at
from shim.core.job.variables import Variables, checked_port
from shim.errors import StateError


class Msrun(Launcher):
    name = "msrun"
    level = 0
    signs = ("MS_ROLE",)
    rank = ("RANK_ID", "MS_NODE_ID")
    size = ("MS_WORKER_NUM",)

    def is_for_rank(self, variables: Variables) -> bool:
        """Tell whether this process is no scheduler, which is no rank."""
        return variables.get("MS_ROLE") != "MS_SCHED"

    def key(self, variables: Variables) -> JobName:
        port = variables.text("MS_SCHED_PORT", ("MS_ROLE", "MS_WORKER_NUM"))
        if variables.get("MS_NODE_ID") is None and (hosts := self.several_hosts(variables)):
            # It leaves the ranks to MindSpore then, and RANK_ID=0, of its scheduler, to all workers beside that.
            raise StateError(
                f"MS_NODE_ID is not set, so that nobody knows the ranks of the workers on several hosts ({hosts})\n"
                "Start msrun with --node_rank on each host: 0 on the one of --master_addr."
            )
        return JobName(f"scheduler port {checked_port('MS_SCHED_PORT', port)}", is_unique=False)

    def several_hosts(self, variables: Variables) -> str:
        return hosts_that_meet_at("MS_SCHED_HOST", variables)

    def address(self, variables: Variables) -> str:
        return address_in(variables, "MS_SCHED_HOST", "MS_SCHED_PORT")


def refuse_size_alone(variables: Variables) -> None:
    """Raise StateError where MindSpore's names for rank and size are set, which do not tell where the others are."""
    if variables.get("RANK_SIZE") not in (None, "1"):
        raise StateError(
            f"{variables.shown(('RANK_ID', 'RANK_SIZE'))}, and MS_ROLE is not set, so that the ranks cannot find each other\n"
            "Start them with msrun or `shim run`, or unset RANK_SIZE."
        )
