"""The collectives that combine elements, at torch's signatures; tensors of any framework are taken."""

from __future__ import annotations

from typing import Any

from shim.core.engines.base import Tensor
from shim.frontends.torch.distributed import _combining
from shim.frontends.torch.distributed._arguments import deprecated, renamed
from shim.frontends.torch.distributed._errors import torch_function
from shim.frontends.torch.distributed._groups import ProcessGroup
from shim.frontends.torch.distributed._reduce_op import ReduceOp
from shim.frontends.torch.distributed._together import all_reduce_together
from shim.frontends.torch.distributed._tracing import between_graphs
from shim.frontends.torch.distributed._work import Work

__all__ = [
    "_reduce_scatter_base",
    "all_reduce",
    "all_reduce_coalesced",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
]

_ALL_REDUCE = torch_function("all_reduce", output="tensor", input="tensor")
_ALL_REDUCE_COALESCED = torch_function("all_reduce_coalesced", output="tensors", input="tensors")
_REDUCE = torch_function("reduce", output="tensor", input="tensor", root="dst")
_REDUCE_SCATTER = torch_function("reduce_scatter", input="input_list")
_REDUCE_SCATTER_SINGLE = torch_function("reduce_scatter_single")
_REDUCE_SCATTER_TENSOR = torch_function("reduce_scatter_tensor")
_REDUCE_SCATTER_BASE = torch_function("_reduce_scatter_base")


def all_reduce(
    tensor: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Combine every rank's *tensor* by *op*, in place.

    Raises: ValueError for an *op* that its dtype has not, as MAX of complex numbers.
    Deviates: a *tensor* whose elements share memory, as expand makes it, raises TypeError; torch 2.13 takes it.
    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.all_reduce
    """
    return _combining.all_reduce(_ALL_REDUCE, tensor, op, group, async_op)


def all_reduce_coalesced(
    tensors: list[Tensor] | Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Combine every rank's *tensors*, a list of one dtype or a single one, by *op*, in place; a Future when *async_op*.

    Raises: TypeError when *tensors* is no list; ValueError for several dtypes or none; warns (FutureWarning).
    Deviates: with *async_op* too every rank must have called before it returns, as the lists' lengths are compared.
    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.all_reduce_coalesced
    """
    return all_reduce_together(
        deprecated(_ALL_REDUCE_COALESCED, "all_reduce for each tensor"), group, tensors, op, async_op
    )


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Combine every rank's *tensor* by *op* into that of the world's rank *dst*, or of *group*'s rank *group_dst*.

    Raises: ValueError unless exactly one of *dst* and *group_dst* is given.
    Deviates: other ranks' tensors are left as they are; torch 2.13 writes partial sums into them with gloo.
    Deviates: where *tensor* is written, one whose elements share memory raises TypeError; torch 2.13 takes it.
    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.reduce
    """
    return _combining.reduce(_REDUCE, tensor, dst, op, group, async_op, group_dst)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine every rank's *input_list*, a tensor for each rank, by *op*; *output* gets the rank's place in it.

    Raises: TypeError when *input_list* is no list; ValueError for a wrong length, size or dtype.
    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.reduce_scatter
    """
    return _combining.reduce_scatter(_REDUCE_SCATTER, output, input_list, op, group, async_op)


def reduce_scatter_single(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Combine every rank's *input*, (size * n, ...) or (size, n, ...), by *op*; *output* (n, ...) gets the rank's part.

    Raises: ValueError for another shape or dtype.
    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.reduce_scatter_single
    """
    return _combining.reduce_scatter_whole(_REDUCE_SCATTER_SINGLE, output, input, op, group, async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Combine every rank's *input*, (size * n, ...) or (size, n, ...), by *op*; *output* (n, ...) gets the rank's part.

    Raises: ValueError for another shape or dtype; warns (FutureWarning) of its new name, reduce_scatter_single.
    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.reduce_scatter_tensor
    """
    return _combining.reduce_scatter_whole(
        renamed(_REDUCE_SCATTER_TENSOR, "reduce_scatter_single"), output, input, op, group, async_op
    )


def _reduce_scatter_base(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Combine every rank's *input*, (size * n, ...) or (size, n, ...), by *op*; *output* (n, ...) gets the rank's part.

    Raises: ValueError for another shape or dtype; warns (FutureWarning) of its new name, reduce_scatter_single.
    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.reduce_scatter_single
    """
    return _combining.reduce_scatter_whole(
        renamed(_REDUCE_SCATTER_BASE, "reduce_scatter_single"), output, input, op, group, async_op
    )


between_graphs(globals(), __all__)
