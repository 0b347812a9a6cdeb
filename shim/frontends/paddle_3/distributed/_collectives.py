"""The collectives of paddle 3: those with the signatures or the reduce ops of this version alone, the output before the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shim.core.engines.base import Tensor
from shim.frontends._paddle.collectives.bodies import (
    exchange,
    exchange_single,
    reduce_at,
    reduce_everywhere,
    reduce_one_tensor,
    reduce_parts,
)
from shim.frontends._paddle.collectives.object_lists import receive_items, send_items
from shim.frontends._paddle.errors import ArgumentRuntimeError, paddle_function
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.reduce_op import WITHOUT_AVERAGE, ReduceOp, engine_op
from shim.frontends._paddle.tasks import Task

__all__ = [
    "all_reduce",
    "alltoall",
    "alltoall_single",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "send_object_list",
]

_ALL_REDUCE = paddle_function("all_reduce", output="tensor", input="tensor")
_REDUCE = paddle_function("reduce", output="tensor", input="tensor", root="dst")
_REDUCE_SCATTER = paddle_function("reduce_scatter", output="tensor", input="tensor_list")
_REDUCE_SCATTER_BASE = paddle_function("_reduce_scatter_base", output="output", input="input")
_ALLTOALL = paddle_function("alltoall", output="out_tensor_list", input="in_tensor_list")
_ALLTOALL_SINGLE = paddle_function(
    "alltoall_single",
    output="out_tensor",
    input="in_tensor",
    output_splits="out_split_sizes",
    input_splits="in_split_sizes",
)
_SEND = paddle_function("send_object_list", input="object_list", peer="dst")
_RECV = paddle_function("recv_object_list", output="object_list", peer="src")


def all_reduce(tensor: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Combine every rank's *tensor*, all of one shape, by *op*, in place.

    Raises: ValueError for an *op* that is not paddle's, or that the dtype has not.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/all_reduce_en.html
    """
    return reduce_everywhere(_ALL_REDUCE, tensor, engine_op(_ALL_REDUCE, group, op), group, sync_op)


def reduce(
    tensor: Tensor, dst: int, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Combine every rank's *tensor*, all of one shape, by *op* into that of the world's rank *dst*.

    Raises: ValueError for a *dst* outside the group and an *op* that is not paddle's, or that the dtype has not.
    Deviates: other ranks' tensors are left as they are; paddle on gloo overwrites parts of them.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/reduce_en.html
    """
    return reduce_at(_REDUCE, tensor, dst, engine_op(_REDUCE, group, op), group, sync_op)


def reduce_scatter(
    tensor: Tensor,
    tensor_list: Sequence[Tensor] | Tensor,
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Combine all n ranks' *tensor_list*, n tensors or one of shape (n * m, ...), by *op*; *tensor* (m, ...) gets this rank's part.

    Raises: RuntimeError for an *op* that is not paddle's; ValueError for a wrong length, size or dtype.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/reduce_scatter_en.html
    """
    return reduce_parts(
        _REDUCE_SCATTER,
        tensor,
        tensor_list,
        engine_op(_REDUCE_SCATTER, group, op, error=ArgumentRuntimeError),
        group,
        sync_op,
    )


def _reduce_scatter_base(
    output: Tensor, input: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Combine every rank's *input* by *op* and put this rank's part of it, cut along dimension 0, in *output*.

    Raises: RuntimeError for an *op* that is not SUM, MAX, MIN or PROD; ValueError for a wrong size or dtype.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/reduce_scatter_en.html
    """
    return reduce_one_tensor(
        _REDUCE_SCATTER_BASE,
        output,
        input,
        engine_op(_REDUCE_SCATTER_BASE, group, op, WITHOUT_AVERAGE, ArgumentRuntimeError),
        group,
        sync_op,
    )


def alltoall(
    out_tensor_list: list[Any] | Tensor,
    in_tensor_list: list[Any] | Tensor,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Send tensor *j* of *in_tensor_list* to rank *j*, into this rank's place, of the same shape, in its *out_tensor_list*.

    An empty *out_tensor_list* is filled; two tensors in place of the lists, both of shape (n * m, ...), are cut for the n ranks.
    Raises: RuntimeError when one is missing, empty or of another kind; ValueError for a wrong length, size or dtype.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/alltoall_en.html
    """
    return exchange(_ALLTOALL, out_tensor_list, in_tensor_list, group, sync_op)


def alltoall_single(
    out_tensor: Tensor,
    in_tensor: Tensor,
    in_split_sizes: Sequence[int] | None = None,
    out_split_sizes: Sequence[int] | None = None,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Cut *in_tensor* along dimension 0 into a part for each rank and put the parts received in *out_tensor*.

    *in_split_sizes* and *out_split_sizes* are the rows of each rank's part; None means equal parts.
    Raises: ValueError for sizes that do not add up to the rows, or rows that cannot be cut equally.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/alltoall_single_en.html
    """
    return exchange_single(_ALLTOALL_SINGLE, out_tensor, in_tensor, out_split_sizes, in_split_sizes, group, sync_op)


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Group | None = None, dst_in_group: int | None = None
) -> None:
    """Send the objects in *object_list* to the world's rank *dst* (None: 0), or to *group*'s rank *dst_in_group*.

    Raises: ValueError for an empty list, both ranks, the caller's own or one outside; TypeError for what cannot be pickled.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/send_object_list_en.html
    """
    return send_items(_SEND, object_list, dst, group, dst_in_group)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Group | None = None, src_in_group: int | None = None
) -> None:
    """Replace what is in *object_list* by as many objects of the world's rank *src* (None: 0), or *group*'s *src_in_group*.

    Raises: ValueError for an empty list, both ranks, the caller's own or one outside.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/recv_object_list_en.html
    """
    return receive_items(_RECV, object_list, src, group, src_in_group)
