"""ReduceOp, whose members are plain integers, and which reduce op of the engines each of them is."""

from __future__ import annotations

from typing import Any

from shim.core import reduce_ops
from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends._paddle.arguments import refuse

__all__ = ["ReduceOp", "engine_op"]


class ReduceOp:
    """How a reducing collective combines the ranks' elements.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/ReduceOp_en.html
    """

    SUM = 0
    MAX = 1
    MIN = 2
    PROD = 3
    AVG = 4


_ENGINE_OPS = {
    ReduceOp.SUM: reduce_ops.ReduceOp.SUM,
    ReduceOp.MAX: reduce_ops.ReduceOp.MAX,
    ReduceOp.MIN: reduce_ops.ReduceOp.MIN,
    ReduceOp.PROD: reduce_ops.ReduceOp.PRODUCT,
    ReduceOp.AVG: reduce_ops.ReduceOp.AVG,
}


def engine_op(caller: Caller, group: Any, op: Any) -> reduce_ops.ReduceOp:
    """Return the engines' reduce op for paddle's *op*; the number of another framework's op is not one of them."""
    if type(op) is not int or op not in _ENGINE_OPS:
        refuse(caller, group, ArgumentError(f"{{op}} must be a paddle.distributed.ReduceOp, got {op!r}"))
    return _ENGINE_OPS[op]
