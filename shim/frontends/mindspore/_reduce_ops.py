"""How ranks' elements are combined: MindSpore's strings, and what they mean to the engine."""

from __future__ import annotations

from shim.core import reduce_ops


class ReduceOp:
    """The strings that say how ranks' elements are combined.

    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.ReduceOp.html
    """

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    AVG = "avg"


BASIC_OPS = ("sum", "prod", "min", "max")  # those that MindSpore had before 2.10, and its older functions have now

REDUCE_OPS = {
    "sum": reduce_ops.ReduceOp.SUM,
    "prod": reduce_ops.ReduceOp.PRODUCT,
    "min": reduce_ops.ReduceOp.MIN,
    "max": reduce_ops.ReduceOp.MAX,
    "avg": reduce_ops.ReduceOp.AVG,
}
