"""``mindspore.ops``: only the communication primitives.

A primitive is made once, with its group, and called with tensors; ``_primitive`` says how that goes together with
MindSpore's gradients and compiled graphs.

Deviates: compiled graphs take tensors of known shapes that have a dimension and are not empty, have first derivatives
only, and cannot be made by tracing; an error in one that runs is raised some 3 seconds late, and MindSpore does not run
that graph again.
"""

from __future__ import annotations

from shim.frontends.mindspore.ops.operations.comm_ops import (
    AllGather,
    AllGatherV,
    AllReduce,
    AlltoAll,
    AlltoAllV,
    AlltoAllVC,
    Barrier,
    BatchISendIRecv,
    Broadcast,
    CollectiveGather,
    CollectiveScatter,
    NeighborExchange,
    NeighborExchangeV2,
    Receive,
    Reduce,
    ReduceOp,
    ReduceScatter,
    ReduceScatterV,
    Send,
    _AllSwap,
    _HostAllGather,
    _HostReduceScatter,
    _MicroStepAllGather,
    _MiniStepAllGather,
    _MirrorMicroStepOperator,
    _MirrorMiniStepOperator,
    _MirrorOperator,
    _VirtualAccuGrad,
    _VirtualAdd,
    _VirtualAssignAdd,
    _VirtualDataset,
    _VirtualDiv,
    _VirtualOutput,
    _VirtualPipelineEnd,
)

__all__ = [
    "AllGather",
    "AllGatherV",
    "AllReduce",
    "AlltoAll",
    "AlltoAllV",
    "AlltoAllVC",
    "Barrier",
    "BatchISendIRecv",
    "Broadcast",
    "CollectiveGather",
    "CollectiveScatter",
    "NeighborExchange",
    "NeighborExchangeV2",
    "Receive",
    "Reduce",
    "ReduceOp",
    "ReduceScatter",
    "ReduceScatterV",
    "Send",
    "_AllSwap",
    "_HostAllGather",
    "_HostReduceScatter",
    "_MicroStepAllGather",
    "_MiniStepAllGather",
    "_MirrorMicroStepOperator",
    "_MirrorMiniStepOperator",
    "_MirrorOperator",
    "_VirtualAccuGrad",
    "_VirtualAdd",
    "_VirtualAssignAdd",
    "_VirtualDataset",
    "_VirtualDiv",
    "_VirtualOutput",
    "_VirtualPipelineEnd",
]
