"""``mindspore.mint.distributed``: the collectives with a source or a destination."""

from __future__ import annotations

from collections.abc import Sequence

from shim.core.callers import Caller
from shim.core.engines.base import Tensor
from shim.frontends.mindspore._errors import TYPE_ERRORS
from shim.frontends.mindspore._handles import CommHandle
from shim.frontends.mindspore._in_place import rooted
from shim.frontends.mindspore._reduce_ops import ReduceOp

_BROADCAST = Caller("mindspore.mint.distributed.broadcast", output="tensor", input="tensor", root="src")
_REDUCE = Caller("mindspore.mint.distributed.reduce", output="tensor", input="tensor", root="dst")
_GATHER = Caller(
    "mindspore.mint.distributed.gather", output="gather_list", input="tensor", root="dst", errors=TYPE_ERRORS
)
_GATHER_INTO_TENSOR = Caller(
    "mindspore.mint.distributed.gather_into_tensor", output="output_tensor", input="input_tensor", root="dst"
)
_SCATTER = Caller(
    "mindspore.mint.distributed.scatter", output="tensor", input="scatter_list", root="src", errors=TYPE_ERRORS
)
_SCATTER_TENSOR = Caller(
    "mindspore.mint.distributed.scatter_tensor", output="output_tensor", input="input_tensor", root="src"
)


def broadcast(tensor: Tensor, src: int, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Copy the *tensor* of the world's rank *src* into the *tensor* of every rank of *group*, all of one shape.

    Raises: TypeError if *tensor* is no tensor, *src* no int, *group* no str or *async_op* no bool.
    Deviates: raises if its gradient is needed; MindSpore silently leaves the gradient out.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.broadcast.html
    """
    return rooted.broadcast(_BROADCAST, tensor, src, group, async_op)


def reduce(
    tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Combine all ranks' *tensor*, all of one shape, by *op* into that of the world's rank *dst*; the others' stay as they are.

    Raises: TypeError if *tensor* is no tensor, *dst* no int, *op* no reduce op, *group* no str or *async_op* no bool.
    Deviates: raises if its gradient is needed.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.reduce.html
    """
    return rooted.reduce(_REDUCE, tensor, dst, op, group, async_op)


def gather(
    tensor: Tensor, gather_list: Sequence[Tensor], dst: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Copy each rank's *tensor* into its place in the *gather_list* of the world's rank *dst*; every rank needs a list.

    Raises: TypeError if they are no tensors of one dtype and shape, on *dst* one for each rank, *dst* no int or *group* no str.
    Deviates: raises if its gradient is needed.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.gather.html
    """
    return rooted.gather(_GATHER, tensor, gather_list, dst, group, async_op)


def gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, dst: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Concatenate all N ranks' *input_tensor* (x_1, ..., x_R) in the *output_tensor* of the world's rank *dst*.

    That has the shape (N*x_1, ..., x_R); the others' stay as they are.
    Raises: TypeError if one of them is no tensor, *dst* no int, *group* no str or *async_op* no bool.
    Deviates: raises if its gradient is needed.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.gather_into_tensor.html
    """
    return rooted.gather_into_tensor(_GATHER_INTO_TENSOR, output_tensor, input_tensor, dst, group, async_op)


def scatter(
    tensor: Tensor, scatter_list: Sequence[Tensor], src: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Copy each rank's place in the *scatter_list* of the world's rank *src* into its *tensor*; every rank needs a list.

    Raises: TypeError if they are no tensors of one dtype and shape, on *src* one for each rank, *src* no int or *group* no str.
    Deviates: raises if its gradient is needed.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.scatter.html
    """
    return rooted.scatter(_SCATTER, tensor, scatter_list, src, group, async_op)


def scatter_tensor(
    output_tensor: Tensor, input_tensor: Tensor, src: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Copy each rank's rows of the *input_tensor* of the world's rank *src* into its *output_tensor*.

    For N ranks, their shapes are (N*x_1, ..., x_R) and (x_1, ..., x_R).
    Raises: TypeError if one of them is no tensor, *src* no int, *group* no str or *async_op* no bool.
    Deviates: raises if its gradient is needed.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.scatter_tensor.html
    """
    return rooted.scatter_tensor(_SCATTER_TENSOR, output_tensor, input_tensor, src, group, async_op)
