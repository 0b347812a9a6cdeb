"""``mindspore.ops.communication``: the collectives in which every rank does the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shim.core.callers import Caller
from shim.core.engines.base import Tensor
from shim.frontends.mindspore._errors import TYPE_ERRORS
from shim.frontends.mindspore._functional import functional
from shim.frontends.mindspore._functional.in_place_switch import either, in_place_only
from shim.frontends.mindspore._handles import CommHandle
from shim.frontends.mindspore._in_place import collectives
from shim.frontends.mindspore._reduce_ops import ReduceOp

_ALL_REDUCE = Caller("mindspore.ops.communication.all_reduce", output="tensor", input="tensor")
_ALL_GATHER_INTO_TENSOR = Caller(
    "mindspore.ops.communication.all_gather_into_tensor", output="output_tensor", input="input_tensor"
)
_ALL_GATHER_INTO_TENSOR_UNEVEN = Caller(
    "mindspore.ops.communication.all_gather_into_tensor_uneven", output_splits="output_split_sizes"
)
_ALL_GATHER = Caller("mindspore.ops.communication.all_gather", output="tensor_list", input="tensor", errors=TYPE_ERRORS)
_REDUCE_SCATTER_TENSOR = Caller("mindspore.ops.communication.reduce_scatter_tensor")
_REDUCE_SCATTER_TENSOR_UNEVEN = Caller(
    "mindspore.ops.communication.reduce_scatter_tensor_uneven", input_splits="input_split_sizes"
)
_REDUCE_SCATTER = Caller("mindspore.ops.communication.reduce_scatter", input="input_list", errors=TYPE_ERRORS)
_ALL_TO_ALL = Caller("mindspore.ops.communication.all_to_all", output="output_tensor_list", input="input_tensor_list")
_ALL_TO_ALL_SINGLE = Caller(
    "mindspore.ops.communication.all_to_all_single",
    output_splits="output_split_sizes",
    input_splits="input_split_sizes",
)
_ALL_TO_ALL_V_C = Caller(
    "mindspore.ops.communication.all_to_all_v_c", output_splits="send_count_matrix", input_splits="send_count_matrix"
)


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False) -> Any:
    """Combine all ranks' *tensor*, all of one shape, by *op*, "sum", "prod", "min", "max" or "avg", into every rank's *tensor*.

    Not in place: the result is returned, with the handle or None.
    Raises: TypeError if *tensor* is no tensor, *op* not one of these, *group* no str or *async_op* no bool.
    Deviates: has a gradient; MindSpore silently leaves it out.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.all_reduce.html
    """
    return either(
        _ALL_REDUCE,
        lambda: collectives.all_reduce(_ALL_REDUCE, tensor, op, group, async_op),
        lambda: functional.all_reduce(_ALL_REDUCE, tensor, op, group, async_op),
    )


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: str | None = None, async_op: bool = False
) -> Any:
    """Copy all N ranks' *input_tensor*, each of shape (x_1, ..., x_R), into every rank's *output_tensor* (N*x_1, ..., x_R).

    Not in place: the result is returned, with the handle or None, and *output_tensor* not read.
    Raises: TypeError if one of them is no tensor, *group* no str or *async_op* no bool.
    Deviates: takes an output of shape (N, x_1, ..., x_R) too; has a gradient.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.all_gather_into_tensor.html
    """
    return either(
        _ALL_GATHER_INTO_TENSOR,
        lambda: collectives.all_gather_into_tensor(
            _ALL_GATHER_INTO_TENSOR, output_tensor, input_tensor, None, group, async_op
        ),
        lambda: functional.all_gather_into_tensor(_ALL_GATHER_INTO_TENSOR, input_tensor, group, async_op),
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
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.all_gather_into_tensor_uneven.html
    """
    return collectives.all_gather_into_tensor(
        in_place_only(_ALL_GATHER_INTO_TENSOR_UNEVEN), output, input, output_split_sizes, group, async_op
    )


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Copy each rank's *tensor* into its place in every rank's *tensor_list*, whose tensors may have different shapes.

    Raises: TypeError if they are no tensors that fit, one for each rank, *group* no str or *async_op* no bool.
    Deviates: has a gradient; MindSpore silently leaves it out.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.all_gather.html
    """
    return collectives.all_gather(in_place_only(_ALL_GATHER), tensor_list, tensor, group, async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False
) -> Any:
    """Combine all N ranks' *input* of shape (N*x_1, ..., x_R) by *op* and put this rank's rows of that into *output* (x_1, ..., x_R).

    Not in place: the result is returned, with the handle or None, and *output* not read.
    Raises: TypeError if one of them is no tensor, *op* no reduce op, *group* no str or *async_op* no bool.
    Deviates: has a gradient; MindSpore silently leaves it out.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.reduce_scatter_tensor.html
    """
    return either(
        _REDUCE_SCATTER_TENSOR,
        lambda: collectives.reduce_scatter_tensor(_REDUCE_SCATTER_TENSOR, output, input, op, group, async_op),
        lambda: functional.reduce_scatter_tensor(_REDUCE_SCATTER_TENSOR, input, op, group, async_op),
    )


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
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.reduce_scatter_tensor_uneven.html
    """
    return collectives.reduce_scatter_tensor_uneven(
        in_place_only(_REDUCE_SCATTER_TENSOR_UNEVEN), output, input, input_split_sizes, op, group, async_op
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
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.reduce_scatter.html
    """
    return collectives.reduce_scatter(in_place_only(_REDUCE_SCATTER), output, input_list, op, group, async_op)


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: str | None = None,
    async_op: bool = False,
) -> Any:
    """Copy tensor j of rank i's *input_tensor_list* into tensor i, of the same shape, of rank j's *output_tensor_list*.

    Not in place: a tuple of results is returned, with the handle or None; shapes will do for outputs.
    Raises: TypeError if they are no lists of tensors of one dtype, *group* is no str or *async_op* no bool.
    Deviates: has a gradient; MindSpore silently leaves it out.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.all_to_all.html
    """
    return either(
        _ALL_TO_ALL,
        lambda: collectives.all_to_all(_ALL_TO_ALL, output_tensor_list, input_tensor_list, group, async_op),
        lambda: functional.all_to_all(_ALL_TO_ALL, output_tensor_list, input_tensor_list, group, async_op),
    )


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> Any:
    """Send *input_split_sizes*[j] rows of *input* to rank j, and put *output_split_sizes*[i] rows of rank i into *output*.

    Not in place: the result is returned, with the handle or None; *output* may be a shape. The sizes add up to all rows.
    Raises: TypeError if one of them is no tensor, *group* no str or *async_op* no bool; ValueError for rows that do not fit.
    Deviates: has a gradient; MindSpore silently leaves it out.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.all_to_all_single.html
    """
    return either(
        _ALL_TO_ALL_SINGLE,
        lambda: collectives.all_to_all_single(
            _ALL_TO_ALL_SINGLE, output, input, output_split_sizes, input_split_sizes, group, async_op
        ),
        lambda: functional.all_to_all_single(
            _ALL_TO_ALL_SINGLE, output, input, output_split_sizes, input_split_sizes, group, async_op
        ),
    )


def all_to_all_v_c(
    output: Tensor, input: Tensor, send_count_matrix: list[int], group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Send *send_count_matrix*[i*N+j] rows of rank i's *input* to rank j's *output*, on all N ranks alike.

    Row i of the matrix adds up to the rows of rank i's *input*, column i to those of its *output*.
    Raises: TypeError if one of them is no tensor, the matrix no list of N*N ints, *group* no str or *async_op* no bool.
    Deviates: works and has a gradient; MindSpore 2.10 raises NameError.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.all_to_all_v_c.html
    """
    return collectives.all_to_all_by_matrix(
        in_place_only(_ALL_TO_ALL_V_C), output, input, send_count_matrix, group, async_op
    )
