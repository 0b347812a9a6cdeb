"""The functional collectives as torch's autograd sees them. Import this only where torch is loaded.

Loss is the sum over all ranks' losses, so the gradient of a collective is the transposed collective: broadcast and
reduce are each other's, gather and scatter, all_gather and reduce_scatter; all_reduce and all_to_all their own. The backward
of each is written with the functions here, which makes it differentiable again. All ranks of the group must run backward.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shim.core.reduce_ops import ReduceOp
from shim.frontends.torch._compiled_graphs import is_seen, is_traced
from shim.frontends.torch._functional import eager_calls, graph_calls, graph_operators
from shim.frontends.torch._functional.eager_calls import Call, Shape

_torch: Any = sys.modules["torch"]
if TYPE_CHECKING:

    class _Function:
        """What mypy, which does not see torch, is to know of it."""

        @classmethod
        def apply(cls, *arguments: Any) -> Any: ...

else:
    _Function = _torch.autograd.Function
_without_dead_wrappers: Any = _torch._functorch.utils.unwrap_dead_wrappers


class _Collective(_Function):
    """An autograd function, which ``in_graph`` stands for while torch traces or transforms what calls it."""

    in_graph: Any = None

    @classmethod
    def apply(cls, call: Call, *arguments: Any) -> Any:
        if cls.in_graph is not None and (call.carrier is graph_calls or is_traced()):
            return cls.in_graph(call, *arguments)
        if is_seen():
            from shim.frontends.torch._functional import seen_calls  # which is in the way of torch's own calls

            call = call._replace(carrier=seen_calls)
        return super(_Function, cls).apply(call, *_without_dead_wrappers(arguments))  # type: ignore[misc]


class Broadcast(_Collective):
    """``apply(call, tensor, root)``"""

    in_graph = staticmethod(graph_calls.broadcast)

    @staticmethod
    def forward(ctx: Any, call: Call, tensor: Any, root: int) -> Any:
        ctx.call, ctx.root = call.waiting(), root
        return call.carrier.broadcast(call, call.plain(tensor), root)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None, Reduce.apply(ctx.call, gradient, ReduceOp.SUM, 1.0, ctx.root), None


class Reduce(_Collective):
    """``apply(call, tensor, op, factor, root)``: zeros on other ranks than *root*."""

    in_graph = staticmethod(graph_calls.reduce)

    @staticmethod
    def forward(ctx: Any, call: Call, tensor: Any, op: ReduceOp, factor: float, root: int) -> Any:
        ctx.root = root
        _remember(ctx, call, op, factor, tensor)
        return call.carrier.reduce(call, call.plain(tensor), op, factor, root)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        total = Broadcast.apply(ctx.call, gradient, ctx.root)
        return None, *_shares(ctx, [total]), None, None, None


class AllReduce(_Collective):
    """``apply(call, tensor, op, factor)``"""

    in_graph = staticmethod(graph_calls.all_reduce)

    @staticmethod
    def forward(ctx: Any, call: Call, tensor: Any, op: ReduceOp, factor: float) -> Any:
        _remember(ctx, call, op, factor, tensor)
        return call.carrier.all_reduce(call, call.plain(tensor), op, factor)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        total = AllReduce.apply(ctx.call, gradient, ReduceOp.SUM, 1.0)
        return None, *_shares(ctx, [total]), None, None


class AllGather(_Collective):
    """``apply(call, tensor, output)``: into *output* or, when it is None, a new tensor."""

    in_graph = staticmethod(graph_calls.all_gather)

    @staticmethod
    def forward(ctx: Any, call: Call, tensor: Any, output: Any) -> Any:
        ctx.call, ctx.shape = call.waiting(), tuple(tensor.shape)
        return call.carrier.all_gather(call, call.plain(tensor), _written(output))

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None, ReduceScatter.apply(ctx.call, gradient, ReduceOp.SUM, 1.0, ctx.shape), None


class AllGatherParts(_Collective):
    """``apply(call, tensor, shapes)``: a tuple of tensors of *shapes*."""

    in_graph = staticmethod(graph_calls.all_gather_parts)

    @staticmethod
    def forward(ctx: Any, call: Call, tensor: Any, shapes: Sequence[Shape]) -> Any:
        ctx.call = call.waiting()
        return call.carrier.all_gather_parts(call, call.plain(tensor), shapes)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, ReduceScatterParts.apply(ctx.call, ReduceOp.SUM, 1.0, None, *gradients), None


class ReduceScatter(_Collective):
    """``apply(call, tensor, op, factor, shape)``: a part has *shape*, or the equal rows when it is None."""

    in_graph = staticmethod(graph_calls.reduce_scatter)

    @staticmethod
    def forward(ctx: Any, call: Call, tensor: Any, op: ReduceOp, factor: float, shape: Shape | None) -> Any:
        _remember(ctx, call, op, factor, tensor)
        return call.carrier.reduce_scatter(call, call.plain(tensor), op, factor, shape)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        total = AllGather.apply(ctx.call, gradient, None)
        return None, *_shares(ctx, [total.reshape(ctx.shapes[0])]), None, None, None


class ReduceScatterParts(_Collective):
    """``apply(call, op, factor, output, *parts)``: into *output* or, when it is None, a new tensor."""

    @staticmethod
    def in_graph(call: Call, op: ReduceOp, factor: float, output: Any, *parts: Any) -> Any:
        return graph_calls.reduce_scatter_parts(call, parts, op, factor, output)

    @staticmethod
    def forward(ctx: Any, call: Call, op: ReduceOp, factor: float, output: Any, *parts: Any) -> Any:
        _remember(ctx, call, op, factor, *parts)
        return call.carrier.reduce_scatter_parts(call, list(map(call.plain, parts)), op, factor, _written(output))

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        totals = AllGatherParts.apply(ctx.call, gradient, ctx.shapes)
        return None, None, None, None, *_shares(ctx, totals)


class Gather(_Collective):
    """``apply(call, tensor, shapes, root)``: a tuple of tensors of *shapes*, zeros on other ranks than *root*."""

    @staticmethod
    def forward(ctx: Any, call: Call, tensor: Any, shapes: Sequence[Shape], root: int) -> Any:
        ctx.call, ctx.root, ctx.shape = call.waiting(), root, tuple(tensor.shape)
        return eager_calls.gather(call, call.plain(tensor), shapes, root)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, Scatter.apply(ctx.call, ctx.root, ctx.shape, *gradients), None, None


class Scatter(_Collective):
    """``apply(call, root, shape, *parts)``: this rank's part, of *shape*; other ranks' *parts* get gradients of zero."""

    @staticmethod
    def forward(ctx: Any, call: Call, root: int, shape: Shape, *parts: Any) -> Any:
        ctx.call, ctx.root, ctx.shapes = call.waiting(), root, [tuple(part.shape) for part in parts]
        return eager_calls.scatter(call, list(map(call.plain, parts)), parts[0], shape, root)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None, None, None, *Gather.apply(ctx.call, gradient, ctx.shapes, ctx.root)


class AllToAll(_Collective):
    """``apply(call, tensor, rows, output_splits, input_splits, output)``: *rows* come, into *output* if it is not None."""

    in_graph = staticmethod(graph_calls.all_to_all)

    @staticmethod
    def forward(
        ctx: Any, call: Call, tensor: Any, rows: int, output_splits: Any, input_splits: Any, output: Any
    ) -> Any:
        ctx.call, ctx.rows, ctx.splits = call.waiting(), tensor.shape[0], (input_splits, output_splits)
        return call.carrier.all_to_all(call, call.plain(tensor), rows, output_splits, input_splits, _written(output))

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None, AllToAll.apply(ctx.call, gradient, ctx.rows, *ctx.splits, None), None, None, None, None


class AllToAllParts(_Collective):
    """``apply(call, shapes, outputs, *parts)``: a tuple of tensors of *shapes*, *outputs* if that is not None."""

    @staticmethod
    def forward(ctx: Any, call: Call, shapes: Sequence[Shape], outputs: Any, *parts: Any) -> Any:
        ctx.call, ctx.shapes = call.waiting(), [tuple(part.shape) for part in parts]
        into = None if outputs is None else list(map(_written, outputs))
        return eager_calls.all_to_all_parts(call, list(map(call.plain, parts)), shapes, into)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None, None, *AllToAllParts.apply(ctx.call, ctx.shapes, None, *gradients)


def _written(output: Any) -> Any:
    """Return *output* as another tensor with the same memory: what ``forward`` returns gets a history of its own."""
    return None if output is None else output.detach()


def _remember(ctx: Any, call: Call, op: ReduceOp, factor: float, *tensors: Any) -> None:
    """Keep what the gradient of reducing *tensors* by *op* needs."""
    ctx.call, ctx.op, ctx.factor = call.waiting(), op, factor
    ctx.shapes = [tuple(tensor.shape) for tensor in tensors]
    if op in (ReduceOp.MIN, ReduceOp.MAX, ReduceOp.PRODUCT):
        ctx.save_for_backward(*tensors)


def _shares(ctx: Any, totals: Sequence[Any]) -> list[Any]:
    """Return what of *totals*, all ranks' gradients of the results summed, belongs to this rank's inputs."""
    if ctx.op is ReduceOp.AVG:
        return [total / ctx.call.group.size for total in totals]
    if ctx.op is ReduceOp.PREMUL_SUM:
        return [total * ctx.factor for total in totals]
    if ctx.op is ReduceOp.PRODUCT:
        return [total * _product_of_others(ctx.call, one) for total, one in zip(totals, ctx.saved_tensors, strict=True)]
    if ctx.op in (ReduceOp.MIN, ReduceOp.MAX):
        return [
            total * _share_of_extremum(ctx.call, one, ctx.op)
            for total, one in zip(totals, ctx.saved_tensors, strict=True)
        ]
    return list(totals)


def _product_of_others(call: Call, tensor: Any) -> Any:
    """Return the product of the other ranks' tensors: unlike result / tensor it is right where tensor is zero."""
    everyone = AllGatherParts.apply(call, tensor, [tuple(tensor.shape)] * call.group.size)
    others = [theirs for rank, theirs in enumerate(everyone) if rank != call.group.rank]
    return _torch.stack(others).prod(0).conj() if others else _torch.ones_like(tensor)


def _share_of_extremum(call: Call, tensor: Any, op: ReduceOp) -> Any:
    """Return 1 where *tensor* alone holds the extremum, 1/k where k ranks do, 0 elsewhere."""
    with _torch.no_grad():
        holds = (tensor == AllReduce.apply(call, tensor, op, 1.0)).to(tensor.dtype)
        return holds / AllReduce.apply(call, holds, ReduceOp.SUM, 1.0)


for _name, _function in (
    ("broadcast", Broadcast),
    ("reduce", Reduce),
    ("all_reduce", AllReduce),
    ("all_gather", AllGather),
    ("reduce_scatter", ReduceScatter),
    ("all_to_all", AllToAll),
):
    graph_operators.differentiate(_name, _function)
