"""``paddle.distributed`` of paddle 3 over this project's engine; the output comes first in alltoall and alltoall_single.

Write ``import shim.frontends.paddle_3.distributed as dist``.
Deviates: every tensor that a call writes counts as written in place, so a backward that needs its old elements raises
RuntimeError; paddle silently gives a wrong gradient. What fails while a static graph runs raises paddle's SystemError.
See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/Overview_en.html
"""

from __future__ import annotations

from typing import Any

from shim.frontends import _absent
from shim.frontends._paddle.collectives.gather_and_wait import all_gather, barrier, wait
from shim.frontends._paddle.collectives.object_lists import (
    all_gather_object,
    broadcast_object_list,
    scatter_object_list,
)
from shim.frontends._paddle.collectives.point_to_point import irecv, isend, recv, send
from shim.frontends._paddle.collectives.rooted import broadcast, gather, scatter
from shim.frontends._paddle.graphs import run_as_written
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.processes.spawning import spawn
from shim.frontends._paddle.world.elsewhere import launch, split
from shim.frontends._paddle.world.gloo import gloo_barrier, gloo_init_parallel_env, gloo_release
from shim.frontends._paddle.world.lifecycle import (
    destroy_process_group,
    get_backend,
    get_group,
    get_rank,
    get_world_size,
    is_available,
    is_initialized,
)
from shim.frontends._paddle.world.parallel_env import ParallelEnv
from shim.frontends.paddle_3.distributed import collective, communication, fleet, stream
from shim.frontends.paddle_3.distributed import parallel_helper as parallel_helper
from shim.frontends.paddle_3.distributed._all_to_all import alltoall, alltoall_single
from shim.frontends.paddle_3.distributed._groups import create_nccl_config, init_parallel_env, new_group
from shim.frontends.paddle_3.distributed._objects import recv_object_list, send_object_list
from shim.frontends.paddle_3.distributed._reductions import all_reduce
from shim.frontends.paddle_3.distributed._restarting import restart_process_group, shutdown_process_group
from shim.frontends.paddle_3.distributed.communication.batch_isend_irecv import P2POp, batch_isend_irecv
from shim.frontends.paddle_3.distributed.communication.reduce import ReduceOp, reduce
from shim.frontends.paddle_3.distributed.communication.reduce_scatter import reduce_scatter

__all__ = [
    "Group",
    "P2POp",
    "ParallelEnv",
    "ReduceOp",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "alltoall",
    "alltoall_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "collective",
    "communication",
    "create_nccl_config",
    "destroy_process_group",
    "fleet",
    "gather",
    "get_backend",
    "get_group",
    "get_rank",
    "get_world_size",
    "gloo_barrier",
    "gloo_init_parallel_env",
    "gloo_release",
    "init_parallel_env",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "launch",
    "new_group",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "restart_process_group",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "shutdown_process_group",
    "spawn",
    "split",
    "stream",
    "wait",
]

run_as_written(globals())


def __getattr__(name: str) -> Any:
    """Refuse a name that is not here, with the reason where paddle has it."""
    _absent.refuse_name(__name__, name)
