"""``mindspore.ops.operations.comm_ops``: the communication primitives.

``_gradient`` functions are read by MindSpore's compiler, so they call primitives and know the attributes' values from
outside. The gradients are those of the sum of all ranks' losses; where they are not MindSpore's (2.10:
``ops/_grad_experimental/grad_comm_ops.py``) the primitive says so. Ranks that a primitive is made with are ranks in its group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shim.frontends import _absent, _releases
from shim.frontends.mindspore._primitives.batch import (
    BatchISendIRecv,
)
from shim.frontends.mindspore._primitives.blocks import (
    AlltoAll,
)
from shim.frontends.mindspore._primitives.halos import (
    NeighborExchangeV2,
)
from shim.frontends.mindspore._primitives.host import (
    _HostAllGather,
    _HostReduceScatter,
)
from shim.frontends.mindspore._primitives.messages import (
    Barrier,
    Receive,
    Send,
)
from shim.frontends.mindspore._primitives.mirrors import (
    _MirrorMicroStepOperator,
    _MirrorMiniStepOperator,
    _MirrorOperator,
    _VirtualAssignAdd,
)
from shim.frontends.mindspore._primitives.neighbors import (
    NeighborExchange,
)
from shim.frontends.mindspore._primitives.reductions import (
    AllGather,
    AllReduce,
    ReduceScatter,
)
from shim.frontends.mindspore._primitives.rooted import (
    Broadcast,
    CollectiveGather,
    CollectiveScatter,
    Reduce,
)
from shim.frontends.mindspore._primitives.splits import (
    AllGatherV,
    AlltoAllV,
    AlltoAllVC,
    ReduceScatterV,
    _AllSwap,
)
from shim.frontends.mindspore._primitives.steps import (
    _MicroStepAllGather,
    _MiniStepAllGather,
)
from shim.frontends.mindspore._reduce_ops import ReduceOp

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
    "_VirtualAssignAdd",
]

if not TYPE_CHECKING:  # type checkers then find misspelt names

    def __getattr__(name: str) -> Any:
        """Refuse a name that is not here, with the reason where MindSpore has it."""
        _absent.refuse_name(__name__, name)


_releases.follow(globals())
