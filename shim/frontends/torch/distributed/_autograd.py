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
from shim.frontends.torch.distributed import _functional_calls
from shim.frontends.torch.distributed._functional_calls import Call, Shape

__all__ = [
    "AllGather",
    "AllGatherParts",
    "AllReduce",
    "AllToAll",
    "AllToAllParts",
    "Broadcast",
    "Gather",
    "Reduce",
    "ReduceScatter",
    "ReduceScatterParts",
    "Scatter",
]

_torch: Any = sys.modules["torch"]
if TYPE_CHECKING:

    class _Function:
        """What mypy, which does not see torch, is to know of it."""

        @classmethod
        def apply(cls, *arguments: Any) -> Any: ...

else:
    _Function = _torch.autograd.Function


class Broadcast(_Function):
    """``apply(call, root, tensor)``"""

    @staticmethod
    def forward(ctx: Any, call: Call, root: int, tensor: Any) -> Any:
        ctx.call, ctx.root = call.waiting(), root
        return _functional_calls.broadcast(call, _plain(tensor), root)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None, None, Reduce.apply(ctx.call, ctx.root, ReduceOp.SUM, 1.0, gradient)


class Reduce(_Function):
    """``apply(call, root, op, factor, tensor)``: zeros on other ranks than *root*."""

    @staticmethod
    def forward(ctx: Any, call: Call, root: int, op: ReduceOp, factor: float, tensor: Any) -> Any:
        ctx.root = root
        _remember(ctx, call, op, factor, tensor)
        return _functional_calls.reduce(call, _plain(tensor), op, factor, root)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        total = Broadcast.apply(ctx.call, ctx.root, gradient)
        return None, None, None, None, *_shares(ctx, [total])


class AllReduce(_Function):
    """``apply(call, op, factor, tensor)``"""

    @staticmethod
    def forward(ctx: Any, call: Call, op: ReduceOp, factor: float, tensor: Any) -> Any:
        _remember(ctx, call, op, factor, tensor)
        return _functional_calls.all_reduce(call, _plain(tensor), op, factor)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        total = AllReduce.apply(ctx.call, ReduceOp.SUM, 1.0, gradient)
        return None, None, None, *_shares(ctx, [total])


class AllGather(_Function):
    """``apply(call, output, tensor)``: into *output* or, when it is None, a new tensor."""

    @staticmethod
    def forward(ctx: Any, call: Call, output: Any, tensor: Any) -> Any:
        ctx.call, ctx.shape = call.waiting(), tuple(tensor.shape)
        return _functional_calls.all_gather(call, _plain(tensor), _written(output))

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None, None, ReduceScatter.apply(ctx.call, ReduceOp.SUM, 1.0, ctx.shape, gradient)


class AllGatherParts(_Function):
    """``apply(call, shapes, tensor)``: a tuple of tensors of *shapes*."""

    @staticmethod
    def forward(ctx: Any, call: Call, shapes: Sequence[Shape], tensor: Any) -> Any:
        ctx.call = call.waiting()
        return _functional_calls.all_gather_parts(call, _plain(tensor), shapes)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None, ReduceScatterParts.apply(ctx.call, ReduceOp.SUM, 1.0, None, *gradients)


class ReduceScatter(_Function):
    """``apply(call, op, factor, shape, tensor)``: a part has *shape*, or the equal rows when it is None."""

    @staticmethod
    def forward(ctx: Any, call: Call, op: ReduceOp, factor: float, shape: Shape | None, tensor: Any) -> Any:
        _remember(ctx, call, op, factor, tensor)
        return _functional_calls.reduce_scatter(call, _plain(tensor), op, factor, shape)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        total = AllGather.apply(ctx.call, None, gradient)
        return None, None, None, None, *_shares(ctx, [total.reshape(ctx.shapes[0])])


class ReduceScatterParts(_Function):
    """``apply(call, op, factor, output, *parts)``: into *output* or, when it is None, a new tensor."""

    @staticmethod
    def forward(ctx: Any, call: Call, op: ReduceOp, factor: float, output: Any, *parts: Any) -> Any:
        _remember(ctx, call, op, factor, *parts)
        return _functional_calls.reduce_scatter_parts(call, list(map(_plain, parts)), op, factor, _written(output))

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        totals = AllGatherParts.apply(ctx.call, ctx.shapes, gradient)
        return None, None, None, None, *_shares(ctx, totals)


class Gather(_Function):
    """``apply(call, root, shapes, tensor)``: a tuple of tensors of *shapes*, zeros on other ranks than *root*."""

    @staticmethod
    def forward(ctx: Any, call: Call, root: int, shapes: Sequence[Shape], tensor: Any) -> Any:
        ctx.call, ctx.root, ctx.shape = call.waiting(), root, tuple(tensor.shape)
        return _functional_calls.gather(call, _plain(tensor), shapes, root)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None, None, Scatter.apply(ctx.call, ctx.root, ctx.shape, *gradients)


class Scatter(_Function):
    """``apply(call, root, shape, *parts)``: this rank's part, of *shape*; other ranks' *parts* get gradients of zero."""

    @staticmethod
    def forward(ctx: Any, call: Call, root: int, shape: Shape, *parts: Any) -> Any:
        ctx.call, ctx.root, ctx.shapes = call.waiting(), root, [tuple(part.shape) for part in parts]
        return _functional_calls.scatter(call, list(map(_plain, parts)), parts[0], shape, root)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None, None, None, *Gather.apply(ctx.call, ctx.root, ctx.shapes, gradient)


class AllToAll(_Function):
    """``apply(call, rows, output_splits, input_splits, output, tensor)``: *rows* come, into *output* if it is not None."""

    @staticmethod
    def forward(
        ctx: Any, call: Call, rows: int, output_splits: Any, input_splits: Any, output: Any, tensor: Any
    ) -> Any:
        ctx.call, ctx.rows, ctx.splits = call.waiting(), tensor.shape[0], (input_splits, output_splits)
        return _functional_calls.all_to_all(call, _plain(tensor), rows, output_splits, input_splits, _written(output))

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None, None, None, None, None, AllToAll.apply(ctx.call, ctx.rows, *ctx.splits, None, gradient)


class AllToAllParts(_Function):
    """``apply(call, shapes, outputs, *parts)``: a tuple of tensors of *shapes*, *outputs* if that is not None."""

    @staticmethod
    def forward(ctx: Any, call: Call, shapes: Sequence[Shape], outputs: Any, *parts: Any) -> Any:
        ctx.call, ctx.shapes = call.waiting(), [tuple(part.shape) for part in parts]
        into = None if outputs is None else list(map(_written, outputs))
        return _functional_calls.all_to_all_parts(call, list(map(_plain, parts)), shapes, into)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None, None, *AllToAllParts.apply(ctx.call, ctx.shapes, None, *gradients)


def _plain(tensor: Any) -> Any:
    """Return *tensor*'s elements as the engine reads them."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


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
    everyone = AllGatherParts.apply(call, [tuple(tensor.shape)] * call.group.size, tensor)
    others = [theirs for rank, theirs in enumerate(everyone) if rank != call.group.rank]
    return _torch.stack(others).prod(0).conj() if others else _torch.ones_like(tensor)


def _share_of_extremum(call: Call, tensor: Any, op: ReduceOp) -> Any:
    """Return 1 where *tensor* alone holds the extremum, 1/k where k ranks do, 0 elsewhere."""
    with _torch.no_grad():
        holds = (tensor == AllReduce.apply(call, op, 1.0, tensor)).to(tensor.dtype)
        return holds / AllReduce.apply(call, ReduceOp.SUM, 1.0, holds)
