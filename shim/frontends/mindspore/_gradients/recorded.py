"""A collective as a function of MindSpore's, for its autograd to record. Import this only where MindSpore is loaded."""

from __future__ import annotations

import sys
from typing import Any

from shim.frontends.mindspore._gradients.recorded_call import RecordedCall

_function: Any = sys.modules["mindspore.common._grad_function"]._Function


class _Recorded(_function):  # type: ignore[misc]  # mypy does not see MindSpore
    """One call of a collective in PyNative mode; its tensors are the inputs, and the outputs that it overwrites."""

    @staticmethod
    def forward(ctx: Any, call: RecordedCall, *tensors: Any) -> tuple[Any, ...]:
        ctx.call = call
        ctx.others = len(tensors) - len(call.inputs)
        if call.overwrites:
            ctx.mark_dirty(*call.outputs)
        call.begin()
        return call.outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        return (None, *ctx.call.backward(gradients), *[None] * ctx.others)


def record(call: RecordedCall) -> tuple[Any, ...]:
    """Carry out *call*, or start it, and return its new outputs as MindSpore's autograd knows them."""
    outputs = _Recorded.apply(call, *call.inputs)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def record_in_place(call: RecordedCall) -> bool:
    """Carry out *call*, or start it; tell whether MindSpore's autograd knows all its outputs for its result.

    It does not know views: on a CPU, MindSpore 2.10 gives them a gradient of zero, after operators of its own too.
    """
    others = [tensor for tensor in call.outputs if not any(tensor is known for known in call.inputs)]
    _Recorded.apply(call, *call.inputs, *others)
    if all(map(_is_result, call.outputs)):
        return True
    if call.handle is not None:
        call.handle.wait()
    return False


def _is_result(tensor: Any) -> bool:
    """Tell whether *tensor* comes from the call. (MindSpore raises when it is asked for one of several that is a view.)"""
    try:
        return bool(tensor._grad_node.name() == _Recorded.__name__)
    except RuntimeError:
        return False
