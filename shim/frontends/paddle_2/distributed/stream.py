"""``paddle.distributed.stream`` of paddle 2: the collectives with ``use_calc_stream``.

A host tensor has no stream, and a synchronous call with tensors on a device is on the calculation stream anyway, so that
``use_calc_stream`` makes no difference; without ``sync_op`` it is an error, as in paddle.
"""

from __future__ import annotations

from collections.abc import Sequence

from shim.core.engines.base import Tensor
from shim.frontends._paddle.collectives.bodies import reduce_at, reduce_everywhere, reduce_one_tensor, reduce_parts
from shim.frontends._paddle.collectives.stream import *  # noqa: F403  # all that it lists
from shim.frontends._paddle.collectives.stream import __all__ as _of_both
from shim.frontends._paddle.errors import stream_function
from shim.frontends._paddle.graphs import run_as_written
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.reduce_op import WITHOUT_AVERAGE, ReduceOp, stream_reduction
from shim.frontends._paddle.tasks import Task

__all__ = [*_of_both, "all_reduce", "reduce", "reduce_scatter"]

_ALL_REDUCE = stream_function("all_reduce", output="tensor", input="tensor")
_REDUCE = stream_function("reduce", output="tensor", input="tensor", root="dst")
_REDUCE_SCATTER = stream_function("reduce_scatter", output="tensor", input="tensor_or_tensor_list")
_REDUCE_SCATTER_BASE = stream_function("_reduce_scatter_base", output="out_tensor", input="in_tensor")


def all_reduce(
    tensor: Tensor,
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Combine every rank's *tensor*, all of one shape, by *op*, in place.

    Raises: ValueError for an *op* that is not paddle's, or that the dtype has not; AVG is for paddle 3; RuntimeError for
    *use_calc_stream* without *sync_op*.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/2.6/api/paddle/distributed/stream/all_reduce_en.html
    """
    return reduce_everywhere(
        _ALL_REDUCE, tensor, *stream_reduction(_ALL_REDUCE, op, group, sync_op, use_calc_stream, WITHOUT_AVERAGE)
    )


def reduce(
    tensor: Tensor,
    dst: int = 0,
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Combine every rank's *tensor*, all of one shape, by *op* into that of the world's rank *dst*.

    Raises: ValueError for a *dst* outside the group and an *op* that is not paddle's, or that the dtype has not; AVG is for paddle 3;
    RuntimeError for *use_calc_stream* without *sync_op*.
    Deviates: other ranks' tensors are left as they are; paddle on gloo overwrites parts of them.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/2.6/api/paddle/distributed/stream/reduce_en.html
    """
    return reduce_at(
        _REDUCE, tensor, dst, *stream_reduction(_REDUCE, op, group, sync_op, use_calc_stream, WITHOUT_AVERAGE)
    )


def reduce_scatter(
    tensor: Tensor,
    tensor_or_tensor_list: Sequence[Tensor] | Tensor,
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Combine all n ranks' *tensor_or_tensor_list*, n tensors or one of shape (n * m, ...), by *op*; *tensor* (m, ...) gets this rank's.

    Raises: ValueError for an *op* that is not paddle's; AVG is for paddle 3, and a wrong length, size or dtype; RuntimeError for
    *use_calc_stream* without *sync_op*.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/2.6/api/paddle/distributed/stream/reduce_scatter_en.html
    """
    return reduce_parts(
        _REDUCE_SCATTER,
        tensor,
        tensor_or_tensor_list,
        *stream_reduction(_REDUCE_SCATTER, op, group, sync_op, use_calc_stream, WITHOUT_AVERAGE),
    )


def _reduce_scatter_base(
    out_tensor: Tensor,
    in_tensor: Tensor,
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Combine every rank's *in_tensor* by *op* and put this rank's part of it, cut along dimension 0, in *out_tensor*.

    Raises: ValueError for an *op* that is not paddle's; AVG is for paddle 3, and a wrong size or dtype; RuntimeError for
    *use_calc_stream* without *sync_op*.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/2.6/api/paddle/distributed/stream/reduce_scatter_en.html
    """
    return reduce_one_tensor(
        _REDUCE_SCATTER_BASE,
        out_tensor,
        in_tensor,
        *stream_reduction(_REDUCE_SCATTER_BASE, op, group, sync_op, use_calc_stream, WITHOUT_AVERAGE),
    )


run_as_written(globals())
