"""``ReduceOp`` and ``reduce`` by their other path."""

from __future__ import annotations

from shim.frontends._paddle.reduce_op import ReduceOp
from shim.frontends.paddle_3.distributed._collectives import reduce

__all__ = ["ReduceOp", "is_avg_reduce_op_supported", "reduce"]


def is_avg_reduce_op_supported() -> bool:
    """Tell whether ``ReduceOp.AVG`` can be used, which is always so.

    Deviates: paddle supports it only with NCCL and returns False on a CPU.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/ReduceOp_en.html
    """
    return True
