"""``stream.reduce_scatter``, and its form for one tensor, by their other path."""

from __future__ import annotations

from shim.core.engines.base import Tensor
from shim.frontends._paddle.collectives.reductions import reduce_one_tensor
from shim.frontends._paddle.collectives.streams import checked_sync, stream_function
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.reduce_op import ReduceOp, engine_op
from shim.frontends._paddle.tasks import Task
from shim.frontends.paddle_3.distributed.stream import reduce_scatter

__all__ = ["_reduce_scatter_base", "reduce_scatter"]

_REDUCE_SCATTER_BASE = stream_function("_reduce_scatter_base", output="out_tensor", input="in_tensor")


def _reduce_scatter_base(
    out_tensor: Tensor,
    in_tensor: Tensor,
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Combine every rank's *in_tensor* by *op* and put this rank's part of it, cut along dimension 0, in *out_tensor*.

    Raises: ValueError for an *op* that is not paddle's, and a wrong size or dtype; RuntimeError for
    *use_calc_stream* without *sync_op*.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/stream/reduce_scatter_en.html
    """
    return reduce_one_tensor(
        _REDUCE_SCATTER_BASE,
        out_tensor,
        in_tensor,
        engine_op(_REDUCE_SCATTER_BASE, group, op),
        group,
        checked_sync(_REDUCE_SCATTER_BASE, group, sync_op, use_calc_stream),
    )
