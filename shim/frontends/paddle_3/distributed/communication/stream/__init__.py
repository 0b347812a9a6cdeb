"""``paddle.distributed.stream`` by its other path."""

from __future__ import annotations

from shim.frontends.paddle_3.distributed.communication.stream.reduce_scatter import reduce_scatter
from shim.frontends.paddle_3.distributed.stream import (
    all_gather,
    all_reduce,
    alltoall,
    alltoall_single,
    broadcast,
    gather,
    recv,
    reduce,
    scatter,
    send,
)

__all__ = [
    "all_gather",
    "all_reduce",
    "alltoall",
    "alltoall_single",
    "broadcast",
    "gather",
    "recv",
    "reduce",
    "reduce_scatter",
    "scatter",
    "send",
]
