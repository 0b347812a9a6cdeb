"""The functional collectives where one of torch's modes looks on: each is carried out in the operator that torch's own function calls.

The functions are those of ``eager_calls``. The kernel here takes the place before torch's own for their calls alone; nothing else changes for the
ranks, of which one may have a mode, and another none. Import this only where torch is loaded.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from shim.core.engines.base import Splits
from shim.core.reduce_ops import ReduceOp
from shim.frontends.torch._functional import eager_calls
from shim.frontends.torch._functional.eager_calls import Call, Shape
from shim.frontends.torch._groups import registry

_torch: Any = sys.modules["torch"]
_LIBRARY: Any = _torch.library.Library("_c10d_functional", "IMPL")
# Below modes, above the kernels of devices; torch has none here itself.
_PLACE: Any = _torch._C.DispatchKey.BackendSelect
_AFTER: Any = _torch._C._dispatch_keyset_full_after(_PLACE)
_thread = threading.local()  # its next: an operator's name, and what that does when it is called next on this thread
READS_MEMORY = True  # of the tensors that it is given
reduce = eager_calls.reduce  # torch has no such operator


def broadcast(call: Call, tensor: Any, root: int) -> Any:
    return _within("broadcast", lambda: eager_calls.broadcast(call, tensor, root), tensor, root, _name(call))


def all_reduce(call: Call, tensor: Any, op: ReduceOp, factor: float) -> Any:
    def carry_out() -> Any:
        return eager_calls.all_reduce(call, tensor, op, factor)

    return _within("all_reduce", carry_out, tensor, op.name.lower(), _name(call))


def all_gather(call: Call, tensor: Any, output: Any = None) -> Any:
    def carry_out() -> Any:
        return eager_calls.all_gather(call, tensor, output)

    return _within("all_gather_into_tensor", carry_out, tensor, call.group.size, _name(call))


def all_gather_parts(call: Call, tensor: Any, shapes: Sequence[Shape]) -> Any:
    found: list[Any] = []

    def carry_out() -> Any:
        found.extend(eager_calls.all_gather_parts(call, tensor, shapes))
        return _torch.cat([part.flatten() for part in found])  # which may be of several shapes

    _within("all_gather_into_tensor", carry_out, tensor, call.group.size, _name(call))
    return tuple(found)


def reduce_scatter(
    call: Call, tensor: Any, op: ReduceOp, factor: float, shape: Shape | None = None, output: Any = None
) -> Any:
    def carry_out() -> Any:
        return eager_calls.reduce_scatter(call, tensor, op, factor, shape, output)

    return _within("reduce_scatter_tensor", carry_out, tensor, op.name.lower(), call.group.size, _name(call))


def reduce_scatter_parts(call: Call, parts: Sequence[Any], op: ReduceOp, factor: float, output: Any = None) -> Any:
    def carry_out() -> Any:
        return eager_calls.reduce_scatter_parts(call, parts, op, factor, output)

    return _within("reduce_scatter_tensor", carry_out, parts[0], op.name.lower(), call.group.size, _name(call))


def all_to_all(
    call: Call, tensor: Any, rows: int, output_splits: Splits, input_splits: Splits, output: Any = None
) -> Any:
    def carry_out() -> Any:
        return eager_calls.all_to_all(call, tensor, rows, output_splits, input_splits, output)

    splits = (list(output_splits or ()), list(input_splits or ()))
    return _within("all_to_all_single", carry_out, tensor, *splits, _name(call))


def _name(call: Call) -> str:
    """Return what torch calls the group of *call*."""
    return next((view.group_name for view in registry.views() if view.core is call.group), call.group.name)


def _within(name: str, carry_out: Callable[[], Any], *arguments: Any) -> Any:
    """Call the operator *name* with *arguments* for the modes that look on; what it does and returns is *carry_out*."""
    outer = getattr(_thread, "next", None)
    _thread.next = name, carry_out
    try:
        return getattr(_torch.ops._c10d_functional, name)(*arguments)
    finally:
        _thread.next = outer


def _kernel(name: str) -> Callable[..., Any]:
    operator = getattr(_torch.ops._c10d_functional, name).default

    def kernel(keys: Any, *given: Any, **named: Any) -> Any:
        awaited, carry_out = getattr(_thread, "next", None) or ("", None)
        if carry_out is None or awaited != name:  # torch's own call, or one that a mode makes
            return operator.redispatch(keys & _AFTER, *given, **named)
        _thread.next = None
        return carry_out()

    return kernel


for _operator in ("broadcast", "all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single"):
    _LIBRARY.impl(_operator, _kernel(_operator), _PLACE.name, with_keyset=True)
