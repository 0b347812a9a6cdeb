"""``paddle.distributed.stream`` of paddle 3: the collectives with ``use_calc_stream``.

A host tensor has no stream, and a synchronous call with tensors on a device is on the calculation stream anyway, so that
``use_calc_stream`` makes no difference; without ``sync_op`` it is an error, as in paddle.
"""

from __future__ import annotations

from collections.abc import Sequence

from shim.core.engines.base import Tensor
from shim.frontends._paddle.collectives.reductions import reduce_at, reduce_everywhere, reduce_parts
from shim.frontends._paddle.collectives.stream import (
    all_gather,
    alltoall,
    alltoall_single,
    broadcast,
    gather,
    recv,
    scatter,
    send,
)
from shim.frontends._paddle.collectives.streams import checked_sync, stream_function
from shim.frontends._paddle.graphs import run_as_written
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.reduce_op import ReduceOp, engine_op
from shim.frontends._paddle.tasks import Task

__all__ = [
    "all_gather",
    "all_reduce",
    "alltoall",
    "alltoall_single",
    "broadcast",
    "gather",
    "recv",
    "reduce",
    "reduce_scatter",
    "scatter",
    "send",
]

_ALL_REDUCE = stream_function("all_reduce", output="tensor", input="tensor")
_REDUCE = stream_function("reduce", output="tensor", input="tensor", root="dst")
_REDUCE_SCATTER = stream_function("reduce_scatter", output="tensor", input="tensor_or_tensor_list")


def all_reduce(
    tensor: Tensor,
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Combine every rank's *tensor* by *op*, in place.

    Raises: ValueError for an *op* that is not paddle's, or that the dtype has not; RuntimeError for
    *use_calc_stream* without *sync_op*.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/stream/all_reduce_en.html
    """
    return reduce_everywhere(
        _ALL_REDUCE,
        tensor,
        engine_op(_ALL_REDUCE, group, op),
        group,
        checked_sync(_ALL_REDUCE, group, sync_op, use_calc_stream),
    )


def reduce(
    tensor: Tensor,
    dst: int = 0,
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Combine every rank's *tensor* by *op* into the *tensor* of the world's rank *dst*.

    Raises: ValueError for a *dst* outside the group and an *op* that is not paddle's, or that the dtype has not;
    RuntimeError for *use_calc_stream* without *sync_op*.
    Deviates: other ranks' tensors are left as they are; paddle on gloo overwrites parts of them.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/stream/reduce_en.html
    """
    return reduce_at(
        _REDUCE,
        tensor,
        dst,
        engine_op(_REDUCE, group, op),
        group,
        checked_sync(_REDUCE, group, sync_op, use_calc_stream),
    )


def reduce_scatter(
    tensor: Tensor,
    tensor_or_tensor_list: Sequence[Tensor] | Tensor,
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Combine every rank's *tensor_or_tensor_list*, of a part for each rank, by *op*; *tensor* gets this rank's part.

    Raises: ValueError for an *op* that is not paddle's, and a wrong length, size or dtype; RuntimeError for
    *use_calc_stream* without *sync_op*.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/stream/reduce_scatter_en.html
    """
    return reduce_parts(
        _REDUCE_SCATTER,
        tensor,
        tensor_or_tensor_list,
        engine_op(_REDUCE_SCATTER, group, op),
        group,
        checked_sync(_REDUCE_SCATTER, group, sync_op, use_calc_stream),
    )


run_as_written(globals())
