"""``mindspore.ops.operations.comm_ops``: the communication primitives.

``_gradient`` functions are read by MindSpore's compiler, so they call primitives and know the attributes' values from
outside. The gradients are those of the sum of all ranks' losses; where they are not MindSpore's (2.10:
``ops/_grad_experimental/grad_comm_ops.py``) the primitive says so. Ranks that a primitive is made with are ranks in its group.
"""

from __future__ import annotations

from shim.frontends.mindspore.ops.operations._batch import (
    BatchISendIRecv,
)
from shim.frontends.mindspore.ops.operations._blocks import (
    AlltoAll,
)
from shim.frontends.mindspore.ops.operations._halos import (
    NeighborExchangeV2,
)
from shim.frontends.mindspore.ops.operations._host import (
    _HostAllGather,
    _HostReduceScatter,
)
from shim.frontends.mindspore.ops.operations._messages import (
    Barrier,
    Receive,
    Send,
)
from shim.frontends.mindspore.ops.operations._mirrors import (
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
from shim.frontends.mindspore.ops.operations._neighbors import (
    NeighborExchange,
)
from shim.frontends.mindspore.ops.operations._reductions import (
    AllGather,
    AllReduce,
    ReduceOp,
    ReduceScatter,
)
from shim.frontends.mindspore.ops.operations._rooted import (
    Broadcast,
    CollectiveGather,
    CollectiveScatter,
    Reduce,
)
from shim.frontends.mindspore.ops.operations._splits import (
    AllGatherV,
    AlltoAllV,
    AlltoAllVC,
    ReduceScatterV,
    _AllSwap,
)
from shim.frontends.mindspore.ops.operations._steps import (
    _MicroStepAllGather,
    _MiniStepAllGather,
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
