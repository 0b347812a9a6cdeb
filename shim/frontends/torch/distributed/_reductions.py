"""The collectives that combine elements, at torch's signatures; tensors of any framework are taken."""

from __future__ import annotations

from typing import Any

from shim.core import calls
from shim.core.engines.base import Tensor
from shim.core.work import ENDED
from shim.frontends.torch._calls.arguments import is_now, list_of, one_of, root_of
from shim.frontends.torch._calls.coalesced_lists import all_reduce_together
from shim.frontends.torch._calls.coalescing_blocks import begins_at_once, finish_or_collect, open_blocks
from shim.frontends.torch._calls.deprecations import deprecated, renamed
from shim.frontends.torch._calls.reduce_op import PLAIN_SUM, SUM, AnyReduceOp, ReduceOp, reduction_of
from shim.frontends.torch._calls.sparse_tensors import sum_of_sparse
from shim.frontends.torch._calls.whole_tensors import reduce_scatter_whole
from shim.frontends.torch._calls.work import Work, finish
from shim.frontends.torch._compiled_graphs import between_graphs
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups.group_arguments import group_of
from shim.frontends.torch._groups.process_group import ProcessGroup

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
    tensor: Tensor, op: AnyReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Combine every rank's *tensor*, all of one shape, by *op*, in place. A sparse COO one gets the coalesced sum.

    Raises: ValueError for an *op* that its dtype has not, as MAX of complex numbers.
    Deviates: a *tensor* whose elements share memory, as expand makes it, raises TypeError; torch 2.13 takes it. With a sparse
    tensor, it returns only after every rank has called, even with *async_op*.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.all_reduce
    """
    members = group_of(_ALL_REDUCE, group)
    at_once = not open_blocks or begins_at_once(members)
    kind, factor = PLAIN_SUM if op is SUM else reduction_of(_ALL_REDUCE, members, op, tensor)
    now = async_op is False or is_now(_ALL_REDUCE, members, async_op)
    work = calls.all_reduce(_ALL_REDUCE, members, tensor, tensor, kind, factor, now and at_once, sum_of_sparse)
    return None if work is ENDED else finish_or_collect(members, "all_reduce", work, async_op, tensor)


def all_reduce_coalesced(
    tensors: list[Any] | Tensor,
    op: AnyReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Combine every rank's *tensors*, a list of one dtype or a single one, of the same shapes, by *op*, in place; a Future when *async_op*.

    Raises: TypeError when *tensors* is no list; ValueError for several dtypes or none; warns (FutureWarning).
    Deviates: even with *async_op*, it returns only after every rank has called, because the lists' lengths are compared.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.all_reduce_coalesced
    """
    return all_reduce_together(
        deprecated(_ALL_REDUCE_COALESCED, "all_reduce for each tensor", "2.0"),
        group_of(_ALL_REDUCE_COALESCED, group),
        tensors,
        op,
        async_op,
    )


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: AnyReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Combine every rank's *tensor*, all of one shape, by *op* into that of the world's rank *dst*, or of *group*'s rank *group_dst*.

    Raises: ValueError unless exactly one of *dst* and *group_dst* is given.
    Deviates: other ranks' tensors are left as they are; torch 2.13 writes partial sums into them with gloo.
    Deviates: where *tensor* is written, one whose elements share memory raises TypeError; torch 2.13 takes it.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.reduce
    """
    members = group_of(_REDUCE, group)
    kind, factor = PLAIN_SUM if op is SUM else reduction_of(_REDUCE, members, op, tensor)
    root = root_of(_REDUCE, members, dst, group_dst)
    now = async_op is False or is_now(_REDUCE, members, async_op)
    work = calls.reduce(_REDUCE, members, tensor, tensor, kind, root, factor, now)
    return None if work is ENDED else finish(work, async_op, tensor)


def reduce_scatter(
    output: Tensor,
    input_list: list[Any],
    op: AnyReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine every rank's *input_list*, a tensor for each rank, by *op*; *output*, of the same shape, gets the rank's place in it.

    Raises: TypeError when *input_list* is no list; ValueError for a wrong length, size or dtype.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.reduce_scatter
    """
    members = group_of(_REDUCE_SCATTER, group)
    into = one_of(_REDUCE_SCATTER, members, "output", output)
    parts = list_of(_REDUCE_SCATTER, members, "input", input_list)
    kind, factor = PLAIN_SUM if op is SUM else reduction_of(_REDUCE_SCATTER, members, op, output)
    now = async_op is False or is_now(_REDUCE_SCATTER, members, async_op)
    work = calls.reduce_scatter(_REDUCE_SCATTER, members, into, parts, kind, factor, None, now)
    return None if work is ENDED else finish(work, async_op, output)


def reduce_scatter_single(
    output: Tensor,
    input: Tensor,
    op: AnyReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine all n ranks' *input*, of shape (n * m, ...) or (n, m, ...), by *op*; *output* (m, ...) gets the rank's part.

    Raises: ValueError for another shape or dtype.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.reduce_scatter_single
    """
    return reduce_scatter_whole(
        _REDUCE_SCATTER_SINGLE, group_of(_REDUCE_SCATTER_SINGLE, group), output, input, op, async_op
    )


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: AnyReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine all n ranks' *input*, of shape (n * m, ...) or (n, m, ...), by *op*; *output* (m, ...) gets the rank's part.

    Raises: ValueError for another shape or dtype; warns (FutureWarning) of its new name, reduce_scatter_single.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.reduce_scatter_tensor
    """
    return reduce_scatter_whole(
        renamed(_REDUCE_SCATTER_TENSOR, "reduce_scatter_single", until="2.14"),
        group_of(_REDUCE_SCATTER_TENSOR, group),
        output,
        input,
        op,
        async_op,
    )


def _reduce_scatter_base(
    output: Tensor,
    input: Tensor,
    op: AnyReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine every rank's *input*, (size * n, ...) or (size, n, ...), by *op*; *output* (n, ...) gets the rank's part.

    Raises: ValueError for another shape or dtype; warns (FutureWarning) of its new name, reduce_scatter_single.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.reduce_scatter_single
    """
    return reduce_scatter_whole(
        deprecated(_REDUCE_SCATTER_BASE, "reduce_scatter_single", "2.0", "reduce_scatter_tensor"),
        group_of(_REDUCE_SCATTER_BASE, group),
        output,
        input,
        op,
        async_op,
    )


between_graphs(globals(), __all__)
