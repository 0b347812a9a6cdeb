"""ReduceOp, and which reduce op of the engines each of its members is."""

from __future__ import annotations

from enum import Enum
from typing import Any

from shim.core import reduce_ops
from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends.torch.distributed._arguments import refuse
from shim.frontends.torch.distributed._errors import ArgumentTypeError

__all__ = ["ReduceOp", "_make_nccl_premul_sum", "engine_op", "factor_of"]


class ReduceOp:
    """How a reducing collective combines the ranks' elements; its members are ``ReduceOp.SUM`` and so on.

    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.ReduceOp
    """

    class RedOpType(Enum):
        """torch's reduce ops under torch's numbers; ``engine_op`` is the engines' own of the same name."""

        SUM = 0
        AVG = 1
        PRODUCT = 2
        MIN = 3
        MAX = 4
        BAND = 5
        BOR = 6
        BXOR = 7
        PREMUL_SUM = 8

        def __init__(self, number: int) -> None:
            self.engine_op = reduce_ops.ReduceOp[self.name]
            self.factor = None if number == 8 else 1.0  # PREMUL_SUM has none until it is given one

        def __int__(self) -> int:
            return int(self.value)

    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM

    __slots__ = ("engine_op", "factor", "op")

    def __init__(self, op: ReduceOp.RedOpType) -> None:
        if not isinstance(op, ReduceOp.RedOpType):
            raise ArgumentTypeError(f"torch.distributed.ReduceOp: op must be a ReduceOp.RedOpType, got {op!r}")
        self.op = op
        self.engine_op = op.engine_op
        self.factor = op.factor

    def __eq__(self, other: object) -> bool:
        return self.op == (other.op if isinstance(other, ReduceOp) else other)

    def __hash__(self) -> int:
        return hash(self.op)

    def __repr__(self) -> str:
        return f"ReduceOp({self.op!r}, factor={self.factor})"


def _make_nccl_premul_sum(factor: Any) -> ReduceOp:
    """Return the reduce op that multiplies this rank's elements by *factor*, a number or a tensor of one, and sums."""
    op = ReduceOp(ReduceOp.PREMUL_SUM)
    op.factor = float(factor)
    return op


def engine_op(caller: Caller, group: Any, op: Any, tensor: Any) -> reduce_ops.ReduceOp:
    """Return the engines' reduce op for *op*, a member of this ReduceOp or of torch's own.

    torch defines no PRODUCT of complex numbers; the other ops that need an order are refused by the engine.
    """
    try:
        found: reduce_ops.ReduceOp = op.engine_op
    except AttributeError:
        found = _from_torch(caller, group, op)
    if found is reduce_ops.ReduceOp.PRODUCT and "complex" in str(getattr(tensor, "dtype", "")).lower():
        refuse(caller, group, ArgumentError(f"{{op}} must be SUM, AVG or PREMUL_SUM for complex tensors, got {op}"))
    return found


def factor_of(caller: Caller, group: Any, op: Any) -> float:
    """Return what *op* multiplies this rank's elements by: 1.0 for all but PREMUL_SUM."""
    if op is ReduceOp.SUM or getattr(op, "op", op).name != "PREMUL_SUM":
        return 1.0
    factor = getattr(op, "factor", None)
    if factor is None:
        refuse(
            caller,
            group,
            ArgumentError(
                "{op} PREMUL_SUM needs a factor\nMake it with torch.distributed._make_nccl_premul_sum(factor)."
            ),
        )
    return float(factor)


def _from_torch(caller: Caller, group: Any, op: Any) -> reduce_ops.ReduceOp:
    """Translate a ReduceOp of torch itself by its name; a program may have imported both."""
    kind = type(op)
    if kind.__name__ in ("RedOpType", "ReduceOp") and kind.__module__.startswith("torch."):
        return reduce_ops.ReduceOp[getattr(op, "op", op).name]
    return refuse(caller, group, ArgumentTypeError(f"{{op}} must be a torch.distributed.ReduceOp, got {op!r}"))
