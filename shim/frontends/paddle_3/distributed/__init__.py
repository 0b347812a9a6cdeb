"""``paddle.distributed`` of paddle 3 over this project's engine; the output comes first in alltoall and alltoall_single.

Write ``import shim.frontends.paddle_3.distributed as dist``.
See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/Overview_en.html
"""

from __future__ import annotations

from shim.frontends._paddle.collectives import all_gather, all_reduce, barrier, wait
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
from shim.frontends._paddle.point_to_point import recv, send
from shim.frontends._paddle.reduce_op import ReduceOp
from shim.frontends._paddle.rooted import broadcast, gather, scatter
from shim.frontends.paddle_3.distributed._all_to_all import alltoall, alltoall_single
from shim.frontends.paddle_3.distributed._groups import init_parallel_env, new_group

__all__ = [
    "Group",
    "ReduceOp",
    "all_gather",
    "all_reduce",
    "alltoall",
    "alltoall_single",
    "barrier",
    "broadcast",
    "destroy_process_group",
    "gather",
    "get_backend",
    "get_group",
    "get_rank",
    "get_world_size",
    "init_parallel_env",
    "is_available",
    "is_initialized",
    "new_group",
    "recv",
    "scatter",
    "send",
    "wait",
]
