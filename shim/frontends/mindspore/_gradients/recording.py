"""Collectives among the functions that MindSpore differentiates in PyNative mode.

MindSpore records which operators made a tensor; of a collective it would know nothing, and leave it out of the gradient
without a word. So while a gradient is recorded that the tensors of a collective belong to, the collective is recorded
too, in place or not, or it is refused where it has no gradient.

A ``Backward`` maps the gradients of a collective's outputs to those of its inputs. It calls collectives in its turn,
so every rank's loss has to depend on the outputs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors import framework_of
from shim.core.work import Work
from shim.errors import UnsupportedError
from shim.frontends.mindspore._gradients.recorded_call import Backward, RecordedCall
from shim.frontends.mindspore._handles import CommHandle, handle_of

__all__ = [
    "Backward",
    "Gradient",
    "belongs",
    "computed",
    "in_place",
    "is_recorded",
    "is_recording",
    "refuse_gradient",
]

Gradient = Callable[[], Backward | None]  # called before the collective begins, if a gradient is being recorded

_NONE = UnsupportedError(
    "has no gradient here, and one is being recorded\n"
    "Pass mindspore.ops.stop_gradient(tensor), or call a function that has one: of mindspore.communication.comm_func, say."
)
_VIEW = UnsupportedError(
    "cannot overwrite a view of another tensor while a gradient is being recorded: MindSpore's would be zero\n"
    "Pass a copy of it, which is not part of another, and read the result there."
)
_LEAF = UnsupportedError(
    "must not overwrite a tensor of which the gradient is asked\nPass the result of an operator, or a copy, and read the result there."
)


def is_recorded(tensors: Sequence[Any]) -> bool:
    """Tell whether MindSpore is recording a gradient to which one of *tensors* belongs."""
    return any(map(belongs, tensors))


def belongs(tensor: Any) -> bool:
    """Tell whether MindSpore is recording a gradient to which *tensor* belongs."""
    # Asked in this order, as asking MindSpore takes longer than all the rest of a short call.
    return getattr(tensor, "_requires_grad", False) and _is_mindspore(tensor) and is_recording()


def is_recording() -> bool:
    """Tell whether MindSpore is recording a gradient."""
    module = sys.modules.get("mindspore.graph.api")
    return module is not None and bool(module._pynative_executor.requires_grad())


def refuse_gradient(caller: Caller, group: ProcessGroup, tensors: Sequence[Any]) -> None:
    """Refuse a collective that has no gradient, on every rank, if one of *tensors* asks for it."""
    if is_recorded(tensors):
        calls.refuse(caller, group, _NONE)


def in_place(
    caller: Caller,
    group: ProcessGroup,
    call: Callable[[bool], Work],
    async_op: bool,
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    gradient: Gradient,
) -> CommHandle | None:
    """Make *call*, which overwrites *outputs*, and return its handle if *async_op*; otherwise carry it out.

    *call* takes whether to do so at once. Where a gradient is recorded, it must have one.
    """
    if not is_recorded([*outputs, *inputs]):
        return handle_of(call(not async_op), async_op)
    work = call(False)
    if any(getattr(tensor, "_requires_grad", False) and tensor._is_leaf for tensor in outputs):
        calls.refuse(caller, group, _LEAF)
    backward = _known(caller, group, gradient, [*outputs, *inputs])
    if any(map(_is_part, outputs)):
        calls.refuse(caller, group, _VIEW)
    recorded = RecordedCall(work, async_op, tuple(outputs), tuple(inputs), backward, overwrites=True)
    if not _recording().record_in_place(recorded):
        raise caller.explain(_VIEW, group)
    return recorded.handle


def computed(
    caller: Caller,
    group: ProcessGroup,
    call: Callable[[bool], Work],
    async_op: bool,
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    gradient: Gradient,
) -> tuple[tuple[Any, ...], CommHandle | None]:
    """Make *call*, which fills the new tensors *outputs*, and return them, with its handle if *async_op*.

    *call* takes whether to carry it out at once. Where a gradient is recorded, it must have one.
    """
    if not is_recorded(inputs):
        return tuple(outputs), handle_of(call(not async_op), async_op)
    work = call(False)
    backward = _known(caller, group, gradient, [*outputs, *inputs])
    recorded = RecordedCall(work, async_op, tuple(outputs), tuple(inputs), backward, overwrites=False)
    return _recording().record(recorded), recorded.handle


def _known(caller: Caller, group: ProcessGroup, gradient: Gradient, tensors: Sequence[Any]) -> Backward:
    """Return the gradient, or refuse the call on every rank if there is none."""
    backward = gradient() if all(map(_is_mindspore, tensors)) else None
    if backward is None:
        calls.refuse(caller, group, _NONE)
    return backward


def _recording() -> Any:
    """Return the module for MindSpore's side, which can be imported only once MindSpore is loaded."""
    from shim.frontends.mindspore._gradients import recorded

    return recorded


def _is_part(tensor: Any) -> bool:
    """Tell whether *tensor* shares another one's memory, as far as that can be seen before it is overwritten.

    A slice that is all of a tensor of which nothing is recorded cannot be told from it, before or after.
    """
    if tensor.storage_offset() or tensor.untyped_storage().size() != tensor.nbytes:
        return True
    return tensor._grad_node is not None and tensor._grad_node.name() in ("StridedSlice", "Split")


def _is_mindspore(tensor: Any) -> bool:
    return framework_of(type(tensor)) == "mindspore"
