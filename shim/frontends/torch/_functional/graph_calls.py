"""The functional collectives as operators of torch, which torch traces into graphs, transforms and differentiates.

The functions are those of ``eager_calls``. Each calls an operator that ``graph_operators`` has registered; groups are named,
because a graph keeps no objects. An operator returns when its result is there. This module imports without torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shim.core.engines.base import Splits
from shim.core.reduce_ops import ReduceOp
from shim.frontends.torch._functional.eager_calls import Call, Shape

READS_MEMORY = False  # of the tensors that it is given


def broadcast(call: Call, tensor: Any, root: int) -> Any:
    return _operators().broadcast(tensor, root, call.group.size, call.group.name)


def all_reduce(call: Call, tensor: Any, op: ReduceOp, factor: float = 1.0) -> Any:
    return _operators().all_reduce(tensor, op.name, factor, call.group.size, call.group.name)


def reduce(call: Call, tensor: Any, op: ReduceOp, factor: float, root: int) -> Any:
    return _operators().reduce(tensor, op.name, factor, root, call.group.size, call.group.name)


def all_gather(call: Call, tensor: Any, output: Any = None) -> Any:
    return _into(output, _operators().all_gather(tensor, call.group.size, call.group.name))


def all_gather_parts(call: Call, tensor: Any, shapes: Sequence[Shape]) -> Any:
    """Return each rank's tensor; *shapes* are all that of *tensor*."""
    return all_gather(call, tensor).reshape(len(shapes), *tensor.shape).unbind(0)


def reduce_scatter(
    call: Call, tensor: Any, op: ReduceOp, factor: float = 1.0, shape: Shape | None = None, output: Any = None
) -> Any:
    part = _operators().reduce_scatter(tensor, op.name, factor, call.group.size, call.group.name)
    return _into(output, part if shape is None else part.reshape(shape))


def reduce_scatter_parts(
    call: Call, parts: Sequence[Any], op: ReduceOp, factor: float = 1.0, output: Any = None
) -> Any:
    """Return the combination of all ranks' part for this one; *parts* have one shape."""
    import torch

    return reduce_scatter(call, torch.stack(tuple(parts)), op, factor, parts[0].shape, output)


def all_to_all(
    call: Call, tensor: Any, rows: int, output_splits: Splits, input_splits: Splits, output: Any = None
) -> Any:
    received = _operators().all_to_all(tensor, rows, output_splits, input_splits, call.group.size, call.group.name)
    return _into(output, received)


def announce(call: Call, tensor: Any, number: int) -> None:
    """Let the ranks agree that *number* coalesced calls follow; *tensor* is one of theirs."""
    _operators().announce(tensor, number, call.group.size, call.group.name)


def _operators() -> Any:
    import torch

    return torch.ops.shim


def _into(output: Any, result: Any) -> Any:
    return result if output is None else output.copy_(result)
