"""What the collectives and messages of the two Paddles do; this lists the functions that are the same in both."""

from __future__ import annotations

from shim.frontends._paddle.collectives.batches import P2POp, batch_isend_irecv
from shim.frontends._paddle.collectives.object_lists import (
    all_gather_object,
    broadcast_object_list,
    scatter_object_list,
)
from shim.frontends._paddle.collectives.of_both import all_gather, barrier, broadcast, gather, scatter, wait
from shim.frontends._paddle.collectives.point_to_point import irecv, isend, recv, send
from shim.frontends._paddle.reduce_op import ReduceOp

__all__ = [
    "P2POp",
    "ReduceOp",
    "all_gather",
    "all_gather_object",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "irecv",
    "isend",
    "recv",
    "scatter",
    "scatter_object_list",
    "send",
    "wait",
]
