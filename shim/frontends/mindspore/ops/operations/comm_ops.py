"""``mindspore.ops.operations.comm_ops``: the communication primitives.

``_gradient`` functions are read by MindSpore's compiler, so they call primitives and know the attributes' values from
outside. The gradients are those of the sum of all ranks' losses; where they are not MindSpore's (2.10:
``ops/_grad_experimental/grad_comm_ops.py``) the primitive says so. Ranks that a primitive is made with are ranks in its group.
"""

from __future__ import annotations

from shim.frontends.mindspore.ops.operations._blocks import AlltoAll
from shim.frontends.mindspore.ops.operations._reductions import AllGather, AllReduce, ReduceOp, ReduceScatter
from shim.frontends.mindspore.ops.operations._rooted import Broadcast, CollectiveGather, CollectiveScatter, Reduce
from shim.frontends.mindspore.ops.operations._splits import (
    AllGatherV,
    AlltoAllV,
    AlltoAllVC,
    ReduceScatterV,
    _AllSwap,
)
from shim.frontends.mindspore.ops.operations._steps import _MicroStepAllGather, _MiniStepAllGather

__all__ = [
    "AllGather",
    "AllGatherV",
    "AllReduce",
    "AlltoAll",
    "AlltoAllV",
    "AlltoAllVC",
    "Broadcast",
    "CollectiveGather",
    "CollectiveScatter",
    "Reduce",
    "ReduceOp",
    "ReduceScatter",
    "ReduceScatterV",
    "_AllSwap",
    "_MicroStepAllGather",
    "_MiniStepAllGather",
]
