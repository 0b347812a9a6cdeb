"""What the collectives of ``mint.distributed`` ask of their arguments, and the handle they return.

The engine refuses objects that are no tensors and sizes that do not fit; here is what only MindSpore asks. Once the
group is known, a refusal is told to the other ranks too, who are waiting in the same collective.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.work import Work, finish
from shim.errors import ShimError, TensorError, UnsupportedError
from shim.frontends.mindspore._errors import ArgumentTypeError
from shim.frontends.mindspore._groups import known_group

__all__ = [
    "REDUCE_OPS",
    "CommHandle",
    "group_for",
    "handle_of",
    "one_tensor",
    "only_default",
    "reduce_op",
    "refuse_tracing",
    "splits",
    "tensor_list",
]

REDUCE_OPS = {
    "sum": ReduceOp.SUM,
    "prod": ReduceOp.PRODUCT,
    "min": ReduceOp.MIN,
    "max": ReduceOp.MAX,
    "avg": ReduceOp.AVG,
}


class CommHandle:
    """A collective that goes on in the background; a handle without one has nothing to wait for."""

    def __init__(self, handle: Work | None = None, exec_sync: bool = False) -> None:
        self.handle = handle
        self.exec_sync = exec_sync

    def wait(self) -> None:
        """Return when the outputs are written, and MindSpore's queue is empty if *exec_sync*; or raise what went wrong."""
        if self.handle is not None:
            self.handle.wait()
        if self.exec_sync and "mindspore" in sys.modules:
            sys.modules["mindspore"].runtime.synchronize()


def handle_of(work: Work, async_op: bool) -> CommHandle | None:
    """Begin *work* and return its handle if *async_op*; otherwise carry it out and return None."""
    begun = finish(work, async_op)
    return None if begun is None else CommHandle(begun)


def group_for(caller: Caller, name: str | None, async_op: object) -> ProcessGroup:
    """Return the process group called *name* for a collective, whose *async_op* must be a bool."""
    refuse_tracing(caller)
    group = known_group(caller, name)
    if not isinstance(async_op, bool):
        _refuse(caller, group, ArgumentTypeError(f"async_op must be a bool, got {type(async_op).__name__}"))
    return group


def refuse_tracing(caller: Caller) -> None:
    """Refuse to be traced by ``mindspore.jit(capture_mode="trace")``.

    It keeps the tensors of the first call as constants: the next call would not communicate, and the gradient be zero.
    """
    module = sys.modules.get("mindspore.graph.jit_context")
    if module is not None and module.jit_context():
        raise caller.explain(
            UnsupportedError(
                "cannot be traced by mindspore.jit(capture_mode='trace')\n"
                "Compile with capture_mode='ast', or leave the call out of the traced function."
            )
        )


def one_tensor(caller: Caller, group: ProcessGroup, role: str, tensor: Any) -> Any:
    """Return *tensor*, which must not be a list of them."""
    if isinstance(tensor, (list, tuple)):
        _refuse(caller, group, TensorError(f"{{{role}}} must be a tensor, got a {type(tensor).__name__}"))
    return tensor


def tensor_list(caller: Caller, group: ProcessGroup, role: str, tensors: Any) -> Sequence[Any]:
    """Return *tensors*, which must be a list or tuple."""
    if not isinstance(tensors, (list, tuple)):
        _refuse(caller, group, TensorError(f"{{{role}}} must be a list of tensors, got a {type(tensors).__name__}"))
    return tensors  # type: ignore[no-any-return]


def reduce_op(caller: Caller, group: ProcessGroup, op: str) -> ReduceOp:
    """Return the engine's reduce op for MindSpore's string."""
    if not isinstance(op, str) or op not in REDUCE_OPS:
        _refuse(caller, group, ArgumentTypeError(f"{{op}} must be one of {', '.join(REDUCE_OPS)}, got {op!r}"))
    return REDUCE_OPS[op]


def splits(sizes: Sequence[int] | None) -> Sequence[int] | None:
    """Return split sizes; an empty list means equal parts in MindSpore, as None does."""
    return sizes or None


def only_default(caller: Caller, group: ProcessGroup, **arguments: object) -> ProcessGroup:
    """Return *group*; refuse *arguments* that the engine has no use for, unless they are None."""
    for parameter, value in arguments.items():
        if value is not None:
            _refuse(caller, group, UnsupportedError(f"{parameter} means nothing to this engine\nLeave it out."))
    return group


def _refuse(caller: Caller, group: ProcessGroup, error: ShimError) -> None:
    """Raise *error*, and let the other ranks know."""
    calls.refused(caller, group, error)
