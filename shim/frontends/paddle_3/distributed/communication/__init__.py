"""The collectives, sends and receives of paddle 3 by their other path."""

from __future__ import annotations

from shim.frontends._paddle.collectives.gather_and_wait import all_gather
from shim.frontends._paddle.collectives.object_lists import (
    all_gather_object,
    broadcast_object_list,
    scatter_object_list,
)
from shim.frontends._paddle.collectives.point_to_point import irecv, isend, recv, send
from shim.frontends._paddle.collectives.rooted import broadcast, gather, scatter
from shim.frontends.paddle_3.distributed._all_to_all import alltoall, alltoall_single
from shim.frontends.paddle_3.distributed._objects import recv_object_list, send_object_list
from shim.frontends.paddle_3.distributed._reductions import all_reduce
from shim.frontends.paddle_3.distributed.communication import group, stream
from shim.frontends.paddle_3.distributed.communication.batch_isend_irecv import P2POp, batch_isend_irecv
from shim.frontends.paddle_3.distributed.communication.group import (
    barrier,
    destroy_process_group,
    get_backend,
    get_group,
    is_initialized,
    wait,
)
from shim.frontends.paddle_3.distributed.communication.reduce import ReduceOp, reduce
from shim.frontends.paddle_3.distributed.communication.reduce_scatter import reduce_scatter

__all__ = [
    "P2POp",
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
    "destroy_process_group",
    "gather",
    "get_backend",
    "get_group",
    "group",
    "irecv",
    "is_initialized",
    "isend",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "stream",
    "wait",
]
