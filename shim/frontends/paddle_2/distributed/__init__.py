"""``paddle.distributed`` of paddle 2 over this project's engine; the input comes first in alltoall and alltoall_single.

Write ``import shim.frontends.paddle_2.distributed as dist``.
See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/Overview_en.html
"""

from __future__ import annotations

from shim.frontends._paddle.collectives import all_gather, barrier, wait
from shim.frontends._paddle.elsewhere import launch, split
from shim.frontends._paddle.gloo import gloo_barrier, gloo_init_parallel_env, gloo_release
from shim.frontends._paddle.groups import Group
from shim.frontends._paddle.lifecycle import (
    destroy_process_group,
    get_backend,
    get_group,
    get_rank,
    get_world_size,
    is_available,
    is_initialized,
)
from shim.frontends._paddle.objects import all_gather_object, broadcast_object_list, scatter_object_list
from shim.frontends._paddle.parallel_env import ParallelEnv
from shim.frontends._paddle.point_to_point import irecv, isend, recv, send
from shim.frontends._paddle.rooted import broadcast, gather, scatter
from shim.frontends._paddle.spawning import spawn
from shim.frontends.paddle_2.distributed import collective, communication, stream
from shim.frontends.paddle_2.distributed._all_to_all import alltoall, alltoall_single
from shim.frontends.paddle_2.distributed._groups import init_parallel_env, new_group
from shim.frontends.paddle_2.distributed._reductions import _reduce_scatter_base, all_reduce
from shim.frontends.paddle_2.distributed.communication.batch_isend_irecv import P2POp, batch_isend_irecv
from shim.frontends.paddle_2.distributed.communication.reduce import ReduceOp, reduce
from shim.frontends.paddle_2.distributed.communication.reduce_scatter import reduce_scatter

__all__ = [
    "Group",
    "P2POp",
    "ParallelEnv",
    "ReduceOp",
    "_reduce_scatter_base",
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
    "destroy_process_group",
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
    "reduce",
    "reduce_scatter",
    "scatter",
    "scatter_object_list",
    "send",
    "spawn",
    "split",
    "stream",
    "wait",
]
