"""``mindspore.mint.distributed``: the collectives in which every rank does the same."""

from __future__ import annotations

from collections.abc import Sequence

from shim.core.callers import Caller
from shim.core.engines.base import Tensor
from shim.frontends.mindspore._errors import TYPE_ERRORS
from shim.frontends.mindspore._handles import CommHandle
from shim.frontends.mindspore._in_place import collectives
from shim.frontends.mindspore._reduce_ops import ReduceOp

_ALL_REDUCE = Caller("mindspore.mint.distributed.all_reduce", output="tensor", input="tensor")
_ALL_GATHER_INTO_TENSOR = Caller(
    "mindspore.mint.distributed.all_gather_into_tensor", output="output_tensor", input="input_tensor"
)
_ALL_GATHER_INTO_TENSOR_UNEVEN = Caller(
    "mindspore.mint.distributed.all_gather_into_tensor_uneven", output_splits="output_split_sizes"
)
_ALL_GATHER = Caller("mindspore.mint.distributed.all_gather", output="tensor_list", input="tensor", errors=TYPE_ERRORS)
_REDUCE_SCATTER_TENSOR = Caller("mindspore.mint.distributed.reduce_scatter_tensor")
_REDUCE_SCATTER_TENSOR_UNEVEN = Caller(
    "mindspore.mint.distributed.reduce_scatter_tensor_uneven", input_splits="input_split_sizes"
)
_REDUCE_SCATTER = Caller("mindspore.mint.distributed.reduce_scatter", input="input_list", errors=TYPE_ERRORS)
_ALL_TO_ALL = Caller("mindspore.mint.distributed.all_to_all", output="output_tensor_list", input="input_tensor_list")
_ALL_TO_ALL_SINGLE = Caller(
    "mindspore.mint.distributed.all_to_all_single", output_splits="output_split_sizes", input_splits="input_split_sizes"
)
_BARRIER = Caller("mindspore.mint.distributed.barrier")


def all_reduce(
    tensor: Tensor, op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Combine all ranks' *tensor*, all of one shape, by *op*, "sum", "prod", "min", "max" or "avg", into every rank's *tensor*.

    Raises: TypeError if *tensor* is no tensor, *op* not one of these, *group* no str or *async_op* no bool.
    Deviates: has a gradient; MindSpore silently leaves it out.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.all_reduce.html
    """
    return collectives.all_reduce(_ALL_REDUCE, tensor, op, group, async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Copy all N ranks' *input_tensor*, each of shape (x_1, ..., x_R), into every rank's *output_tensor* (N*x_1, ..., x_R).

    Raises: TypeError if one of them is no tensor, *group* no str or *async_op* no bool.
    Deviates: takes an output of shape (N, x_1, ..., x_R) too; has a gradient.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.all_gather_into_tensor.html
    """
    return collectives.all_gather_into_tensor(
        _ALL_GATHER_INTO_TENSOR, output_tensor, input_tensor, None, group, async_op
    )


def all_gather_into_tensor_uneven(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Copy every rank's *input*, *output_split_sizes*[rank] rows, into every rank's *output*, of their sum; None means equal numbers.

    Raises: TypeError if one of them is no tensor, *group* no str or *async_op* no bool; ValueError for rows that do not fit.
    Deviates: has a gradient; MindSpore silently leaves it out.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.all_gather_into_tensor_uneven.html
    """
    return collectives.all_gather_into_tensor(
        _ALL_GATHER_INTO_TENSOR_UNEVEN, output, input, output_split_sizes, group, async_op
    )


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Copy each rank's *tensor* into its place in every rank's *tensor_list*, whose tensors may have different shapes.

    Raises: TypeError if they are no tensors that fit, one for each rank, *group* no str or *async_op* no bool.
    Deviates: has a gradient; MindSpore silently leaves it out.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.all_gather.html
    """
    return collectives.all_gather(_ALL_GATHER, tensor_list, tensor, group, async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Combine all N ranks' *input* of shape (N*x_1, ..., x_R) by *op* and put this rank's rows of that into *output* (x_1, ..., x_R).

    Raises: TypeError if one of them is no tensor, *op* no reduce op, *group* no str or *async_op* no bool.
    Deviates: has a gradient; MindSpore silently leaves it out.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.reduce_scatter_tensor.html
    """
    return collectives.reduce_scatter_tensor(_REDUCE_SCATTER_TENSOR, output, input, op, group, async_op)


def reduce_scatter_tensor_uneven(
    output: Tensor,
    input: Tensor,
    input_split_sizes: Sequence[int] | None = None,
    op: str = ReduceOp.SUM,
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Combine all ranks' *input* by *op*, "sum", "min", "max" or "avg", and put *input_split_sizes*[rank] of its rows into *output*.

    Raises: TypeError if one of them is no tensor, *op* not one of these, *group* no str or *async_op* no bool; ValueError for
    sizes that do not add up to the rows of *input*.
    Deviates: has a gradient; MindSpore silently leaves it out.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.reduce_scatter_tensor_uneven.html
    """
    return collectives.reduce_scatter_tensor_uneven(
        _REDUCE_SCATTER_TENSOR_UNEVEN, output, input, input_split_sizes, op, group, async_op
    )


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: str = ReduceOp.SUM,
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Combine all ranks' tensors in one rank's place of *input_list* by *op* into that rank's *output*, of their shape.

    Raises: TypeError if they are no tensors that fit, one for each rank, *op* no reduce op, *group* no str or *async_op* no bool.
    Deviates: has a gradient; MindSpore silently leaves it out.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.reduce_scatter.html
    """
    return collectives.reduce_scatter(_REDUCE_SCATTER, output, input_list, op, group, async_op)


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Copy tensor j of rank i's *input_tensor_list* into tensor i, of the same shape, of rank j's *output_tensor_list*.

    Raises: TypeError if they are no lists of tensors of one dtype, *group* is no str or *async_op* no bool.
    Deviates: has a gradient; MindSpore silently leaves it out.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.all_to_all.html
    """
    return collectives.all_to_all(_ALL_TO_ALL, output_tensor_list, input_tensor_list, group, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Send *input_split_sizes*[j] rows of *input* to rank j, and put *output_split_sizes*[i] rows of rank i into *output*.

    The sizes add up to the rows of each tensor; None means equal parts.
    Raises: TypeError if one of them is no tensor, *group* no str or *async_op* no bool; ValueError for rows that do not fit.
    Deviates: has a gradient; MindSpore silently leaves it out.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.all_to_all_single.html
    """
    return collectives.all_to_all_single(
        _ALL_TO_ALL_SINGLE, output, input, output_split_sizes, input_split_sizes, group, async_op
    )


def barrier(group: str | None = None, async_op: bool = False, device_ids: list[int] | None = None) -> CommHandle | None:
    """Wait until every rank of *group* has called this, and what was put on its device before has ended. *device_ids* is reserved.

    Raises: TypeError if *group* is no str or *async_op* no bool.
    Deviates: an unknown *group* raises RuntimeError.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.barrier.html
    """
    return collectives.barrier(_BARRIER, group, async_op, device_ids)
