"""paddle.distributed.launch."""

from __future__ import annotations

import json
from pathlib import Path

from shim.core.job.launchers.launcher import JobName, Launcher, hosts_counted_in, key_of_port
from shim.core.job.variables import Variables
from shim.errors import StateError

_SET_BY_SHIM_RUN = (
    ("PADDLE_TRAINER_ID", "SHIM_RANK"),
    ("PADDLE_TRAINERS_NUM", "SHIM_WORLD_SIZE"),
    ("PADDLE_TRAINER_ENDPOINTS", "SHIM_ENDPOINTS"),
)


class PaddleLaunch(Launcher):
    name = "paddle.distributed.launch"
    level = 0
    signs = ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM")
    rank = ("PADDLE_TRAINER_ID",)
    size = ("PADDLE_TRAINERS_NUM",)
    local_rank = "PADDLE_LOCAL_RANK"
    local_size = "PADDLE_LOCAL_SIZE"

    def is_repeated(self, variables: Variables) -> bool:
        return variables.repeat(_SET_BY_SHIM_RUN)

    def key(self, variables: Variables) -> JobName:
        endpoints = paddle_endpoints(variables)
        if endpoints:
            return JobName(f"endpoints {endpoints}", is_unique=False)
        if variables.get("PADDLE_MASTER"):
            return JobName(f"paddle master {variables.get('PADDLE_MASTER')}", is_unique=False)
        if variables.get("MASTER_PORT"):
            return key_of_port(variables)
        raise StateError(
            f"PADDLE_TRAINER_ENDPOINTS and PADDLE_MASTER are not set, while "
            f"{variables.shown(('PADDLE_TRAINER_ID', 'PADDLE_TRAINERS_NUM'))}\n"
            "Set one of them, the same on every rank."
        )

    def several_hosts(self, variables: Variables) -> str:
        endpoints = paddle_endpoints(variables) or ""
        hosts = {endpoint.rpartition(":")[0] for endpoint in endpoints.split(",")}
        return hosts_counted_in(variables, "PADDLE_NNODES") or (
            f"PADDLE_TRAINER_ENDPOINTS={endpoints}" if len(hosts) > 1 else ""
        )

    def address(self, variables: Variables) -> str:
        """Return rank 0's endpoint; the launcher's own address is that of any host."""
        endpoints = paddle_endpoints(variables) or ""
        return endpoints.partition(",")[0] or variables.get("PADDLE_MASTER") or ""


def paddle_endpoints(variables: Variables) -> str | None:
    """Return the ranks' addresses, which the launcher moves to a file where they are long."""
    endpoints, file = variables.get("PADDLE_TRAINER_ENDPOINTS"), variables.get("PADDLE_BACKUP_ENV_PATH")
    if endpoints is None and file is not None and Path(file).is_file():
        endpoints = json.loads(Path(file).read_text(encoding="utf-8")).get("PADDLE_TRAINER_ENDPOINTS")
    return endpoints
