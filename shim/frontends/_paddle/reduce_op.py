"""ReduceOp, whose members are plain integers, and which reduce op of the engines each of them is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shim.core import reduce_ops
from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends._paddle.arguments import refuse, stream_sync


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
ALL = {number: name for name, number in vars(ReduceOp).items() if number in _ENGINE_OPS}
WITHOUT_AVERAGE = {number: name for number, name in ALL.items() if name != "AVG"}


def engine_op(
    caller: Caller,
    group: Any,
    op: Any,
    known: Mapping[int, str] = ALL,
    error: type[ArgumentError] = ArgumentError,
) -> reduce_ops.ReduceOp:
    """Return the engines' reduce op for paddle's *op*, one of those *known* to the function; others raise *error*.

    An op must be a plain number: those of another framework's enumeration mean something else.
    """
    if type(op) is not int or op not in known:
        choices = ", ".join(f"{name} ({number})" for number, name in known.items())
        refuse(caller, group, error(f"{{op}} must be one of paddle's ReduceOp {choices}, got {op!r}"))
    return _ENGINE_OPS[op]


def stream_reduction(
    caller: Caller, op: Any, group: Any, sync_op: Any, use_calc_stream: Any, known: Mapping[int, str] = ALL
) -> tuple[reduce_ops.ReduceOp, Any, bool]:
    """Return the engines' op, *group* and *sync_op* of a collective with the reduce op *op*, one of those *known*."""
    engines = engine_op(caller, group, op, known)
    return engines, *stream_sync(caller, group, sync_op, use_calc_stream)
