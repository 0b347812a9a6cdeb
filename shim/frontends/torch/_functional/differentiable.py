"""Each functional collective on torch's tensors with their gradients, and on other frameworks' without any."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from shim.core.callers import Caller
from shim.core.engines.base import Splits
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors import framework_of
from shim.frontends.torch._compiled_graphs import in_graphs, once_a_graph
from shim.frontends.torch._functional import eager_calls, graph_calls
from shim.frontends.torch._functional.eager_calls import Call, Shape


def is_torch(tensor: Any) -> bool:
    """Tell whether *tensor* is one of torch's, whose gradients can be followed."""
    return framework_of(type(tensor)) == "torch"


def begin_call(caller: Caller, group: ProcessGroup, tensors: Sequence[Any], in_background: bool = False) -> Call:
    """Return the call of *caller* in *group* with *tensors*; in the background only where all of these are torch's.

    Refuses tensors of which no other could be made that the engine reads.
    """
    call = Call(caller, group)
    call.check_tensors(tensors)
    if any(map(_has_no_memory, tensors)):
        return call._replace(carrier=graph_calls)
    return Call(caller, group, in_background and all(map(is_torch, tensors)))


def _has_no_memory(tensor: Any) -> bool:
    """Tell whether *tensor* is one of torch's meta or fake tensors, whose collectives have shapes alone."""
    if not is_torch(tensor):
        return False
    fakes: Any = sys.modules.get("torch._subclasses.fake_tensor")  # which whoever makes a fake tensor has loaded
    return bool(tensor.is_meta or (fakes is not None and fakes.is_fake(tensor)))


def broadcast(call: Call, tensor: Any, root: int) -> Any:
    if is_torch(tensor):
        return _autograd().Broadcast.apply(call, tensor, root)
    return eager_calls.broadcast(call, tensor, root)


def all_reduce(call: Call, tensor: Any, op: ReduceOp, factor: float = 1.0) -> Any:
    if is_torch(tensor):
        return _autograd().AllReduce.apply(call, tensor, op, factor)
    return eager_calls.all_reduce(call, tensor, op, factor)


def reduce(call: Call, tensor: Any, op: ReduceOp, factor: float, root: int) -> Any:
    if is_torch(tensor):
        return _autograd().Reduce.apply(call, tensor, op, factor, root)
    return eager_calls.reduce(call, tensor, op, factor, root)


def all_gather(call: Call, tensor: Any, output: Any = None) -> Any:
    if is_torch(tensor) and _may_hold_gradients(output):
        return _autograd().AllGather.apply(call, tensor, _apart(output))
    return eager_calls.all_gather(call, tensor, output)


def all_gather_parts(call: Call, tensor: Any, shapes: Sequence[Shape]) -> Any:
    if is_torch(tensor):
        return _autograd().AllGatherParts.apply(call, tensor, shapes)
    return eager_calls.all_gather_parts(call, tensor, shapes)


def gather(call: Call, tensor: Any, shapes: Sequence[Shape], root: int) -> Any:
    if is_torch(tensor):
        return _autograd().Gather.apply(call, tensor, shapes, root)
    return eager_calls.gather(call, tensor, shapes, root)


def scatter(call: Call, parts: Sequence[Any], shape: Shape, root: int) -> Any:
    if all(map(is_torch, parts)):
        return _autograd().Scatter.apply(call, root, shape, *parts)
    return eager_calls.scatter(call, parts, parts[0], shape, root)


def reduce_scatter(call: Call, tensor: Any, op: ReduceOp, factor: float = 1.0) -> Any:
    if is_torch(tensor):
        return _autograd().ReduceScatter.apply(call, tensor, op, factor, None)
    return eager_calls.reduce_scatter(call, tensor, op, factor)


def reduce_scatter_parts(
    call: Call, parts: Sequence[Any], op: ReduceOp, factor: float = 1.0, output: Any = None
) -> Any:
    if all(map(is_torch, parts)) and _may_hold_gradients(output):
        return _autograd().ReduceScatterParts.apply(call, op, factor, _apart(output), *parts)
    return eager_calls.reduce_scatter_parts(call, parts, op, factor, output)


def all_to_all(
    call: Call, tensor: Any, rows: int, output_splits: Splits, input_splits: Splits, output: Any = None
) -> Any:
    if is_torch(tensor) and _may_hold_gradients(output):
        return _autograd().AllToAll.apply(call, tensor, rows, output_splits, input_splits, _apart(output))
    return eager_calls.all_to_all(call, tensor, rows, output_splits, input_splits, output)


def all_to_all_parts(call: Call, parts: Sequence[Any], outputs: Sequence[Any]) -> Any:
    shapes = [tuple(output.shape) for output in outputs]
    if all(map(is_torch, [*parts, *outputs])):
        return _autograd().AllToAllParts.apply(call, shapes, list(map(_apart, outputs)), *parts)
    return eager_calls.all_to_all_parts(call, parts, shapes, outputs)


def _autograd() -> Any:
    from shim.frontends.torch._functional import autograd

    return autograd


def _may_hold_gradients(output: Any) -> bool:
    """Tell whether *output* is torch's, or None for one that will be."""
    return output is None or is_torch(output)


def _apart(output: Any) -> Any:
    """Return *output*'s memory without what autograd knows of it: it is written, not read."""
    return None if output is None else output.detach()


def _begin_in_graph(caller: Caller, group: ProcessGroup, _tensors: Sequence[Any], in_background: bool = False) -> Call:
    if not _takes_operators():
        import torch

        torch._dynamo.graph_break()
    return Call(caller, group, in_background, None, None)  # an operator waits, whatever is asked for


def _takes_operators() -> bool:
    """Tell whether the part of a graph that is being traced may have operators in it, and register these.

    The body of an activation checkpoint may not: torch 2.13 fails where it is to run operators that have effects once more.
    """
    _autograd()  # registers them
    torch: Any = sys.modules["torch"]
    checkpoint = torch.ops.higher_order.tag_activation_checkpoint
    tracer = torch._dynamo.symbolic_convert.InstructionTranslator.current_tx().output.current_tracer
    while tracer is not None and tracer.source_target is not checkpoint:
        tracer = tracer.parent
    return tracer is None


once_a_graph(_takes_operators)
in_graphs(begin_call, _begin_in_graph)
for _name in (
    "broadcast",
    "all_reduce",
    "all_gather",
    "all_gather_parts",
    "reduce_scatter",
    "reduce_scatter_parts",
    "all_to_all",
):
    in_graphs(globals()[_name], getattr(graph_calls, _name))
