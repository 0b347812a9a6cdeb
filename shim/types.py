"""The types of what the frontends' functions take and return, for annotations, where their framework has no public name for one.

``torch.distributed`` itself has ``Work`` and ``ProcessGroup``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shim.core.engines.base import Tensor as Tensor
    from shim.frontends._paddle.groups.group_views import Group as PaddleGroup
    from shim.frontends._paddle.processes.spawning import MultiprocessContext as PaddleMultiprocessContext
    from shim.frontends._paddle.tasks import Task as PaddleTask
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

_PLACES = {
    "MindSporeCommHandle": "shim.frontends.mindspore._handles:CommHandle",
    "PaddleGroup": "shim.frontends._paddle.groups.group_views:Group",
    "PaddleMultiprocessContext": "shim.frontends._paddle.processes.spawning:MultiprocessContext",
    "PaddleTask": "shim.frontends._paddle.tasks:Task",
    "Tensor": "shim.core.engines.base:Tensor",
    "TorchReduceOp": "shim.frontends.torch._calls.reduce_op:AnyReduceOp",
}


def __getattr__(name: str) -> Any:  # a program loads the frontends that it names
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _PLACES[name].partition(":")
    return getattr(import_module(module), attribute)
