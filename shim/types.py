"""The types of what the frontends' functions take and return, for annotations, where their framework has no public name for one.

``torch.distributed`` itself has ``Work`` and ``ProcessGroup``.
"""

from __future__ import annotations

from shim.core.engines.base import Tensor
from shim.frontends._paddle.groups.group_views import Group as PaddleGroup
from shim.frontends._paddle.tasks import Task as PaddleTask
from shim.frontends._paddle.world.spawning import MultiprocessContext as PaddleMultiprocessContext
from shim.frontends.mindspore._handles import CommHandle as MindSporeCommHandle
from shim.frontends.torch._calls.reduce_op import AnyReduceOp as TorchReduceOp

__all__ = [
    "MindSporeCommHandle",
    "PaddleGroup",
    "PaddleMultiprocessContext",
    "PaddleTask",
    "Tensor",
    "TorchReduceOp",
]
