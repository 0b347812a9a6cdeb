"""A collective as a function of MindSpore's, for its autograd to record. Import this only where MindSpore is loaded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from shim.frontends.mindspore._gradients import RecordedCall

__all__ = ["record"]

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
    """Carry out *call*, or start it, and return its outputs as MindSpore's autograd knows them."""
    overwritten: Sequence[Any] = call.outputs if call.overwrites else ()
    others = [tensor for tensor in overwritten if not any(tensor is known for known in call.inputs)]
    outputs = _Recorded.apply(call, *call.inputs, *others)
    return outputs if isinstance(outputs, tuple) else (outputs,)
