"""ReduceOp, and which reduce op of the engines each of its members is."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

from shim.core import calls, reduce_ops
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.torch._errors import ArgumentTypeError, TorchStateError

# Looking up a member of an enumeration takes longer than anything else here.
_PRODUCT, _PREMUL_SUM = reduce_ops.ReduceOp.PRODUCT, reduce_ops.ReduceOp.PREMUL_SUM
PLAIN_SUM = (reduce_ops.ReduceOp.SUM, 1.0)  # of SUM, with which callers compare themselves: a call takes 40 ns
_NOT_OF_COMPLEX = ("MAX", "MIN", "PRODUCT", "BAND", "BOR", "BXOR")


class ReduceOp:
    """How a reducing collective combines the ranks' elements; its members are ``ReduceOp.SUM`` and so on.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.ReduceOp
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

        def __call__(self, factor: Any) -> ReduceOp:
            """Return PREMUL_SUM with *factor*, a number or a tensor of one. Raises: RuntimeError for other ops."""
            if self.factor is not None:
                raise TorchStateError(f"torch.distributed.ReduceOp: only PREMUL_SUM takes a factor, got {self}")
            return _make_nccl_premul_sum(factor)

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

    def boxed(self) -> Any:
        """Return torch's script object of this op, which torch's graphs hold.

        Raises: UnsupportedError where torch 2.15 or later is not imported: the object is torch's own.
        """
        theirs = _torchs_own("boxed")
        kind = getattr(theirs, self.op.name)
        return (kind(self.factor) if self.op is ReduceOp.PREMUL_SUM else theirs(kind)).boxed()

    @staticmethod
    def unbox(obj: Any) -> ReduceOp:
        """Return the op that *obj*, made by ``boxed``, holds. Raises: UnsupportedError as that does; RuntimeError for anything else."""
        own = _torchs_own("unbox")
        try:
            theirs = own.unbox(obj)
        except (RuntimeError, TypeError):
            text = f"torch.distributed.ReduceOp.unbox: obj must be from ReduceOp.boxed, got {obj!r}"
            raise TorchStateError(text) from None
        name = _name_of(theirs)
        return _make_nccl_premul_sum(theirs.factor) if name == "PREMUL_SUM" else ReduceOp(ReduceOp.RedOpType[name])

    def __eq__(self, other: object) -> bool:
        return self.op == (other.op if isinstance(other, ReduceOp) else other)

    def __hash__(self) -> int:
        return hash(self.op)

    def __repr__(self) -> str:
        return f"ReduceOp({self.op!r}, factor={self.factor})"


SUM = ReduceOp.SUM


def _torchs_own(method: str) -> Any:
    """Return torch's ReduceOp, which must have *method*."""
    theirs = getattr(sys.modules.get("torch.distributed"), "ReduceOp", None)
    if not hasattr(theirs, method):
        raise UnsupportedError(
            f"torch.distributed.ReduceOp.{method}: the torch frontend needs torch 2.15 or later for its script objects\n"
            "Import torch.distributed first."
        )
    return theirs


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class _Factored(Protocol):
    @property
    def factor(self) -> Any: ...


AnyReduceOp = ReduceOp | ReduceOp.RedOpType | _Named | _Factored  # the last two to a type checker: torch's own


def _make_nccl_premul_sum(factor: Any) -> ReduceOp:
    """Return the reduce op that multiplies this rank's elements by *factor*, a number or a tensor of one, and sums."""
    op = ReduceOp(ReduceOp.PREMUL_SUM)
    op.factor = _number(factor)
    return op


def _number(factor: Any) -> float:
    if not isinstance(factor, (str, bytes, bytearray)):  # float() would read a number in it
        try:
            return float(factor.item() if hasattr(factor, "item") else factor)
        except (TypeError, ValueError, RuntimeError):  # the last is torch's for a tensor of several elements
            pass
    raise ArgumentTypeError(
        f"torch.distributed._make_nccl_premul_sum: factor must be a number or a tensor of one element, got {factor!r}"
    )


def supports_complex(reduceOp: Any) -> bool:
    """Tell whether *reduceOp* combines complex numbers, as sums and averages do.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.ReduceOp
    """
    return _name_of(reduceOp) not in _NOT_OF_COMPLEX


class _reduce_op:  # torch's name
    """The reduce ops by name; reading any warns (FutureWarning) that ReduceOp has them."""

    def __init__(self) -> None:
        self.__dict__.update(ReduceOp.RedOpType.__members__, __members__=ReduceOp.RedOpType.__members__)

    def __getattribute__(self, name: str) -> Any:
        if name == "__members__" or not name.startswith("__"):
            warnings.warn(
                "torch.distributed.reduce_op is deprecated: use torch.distributed.ReduceOp", FutureWarning, stacklevel=2
            )
        return object.__getattribute__(self, name)


reduce_op = _reduce_op()


def is_op(op: Any) -> bool:
    """Tell whether *op* is a member of this ReduceOp, an object of it, or one of torch's own."""
    return isinstance(op, (ReduceOp, ReduceOp.RedOpType)) or _is_of_torch(type(op))


def reduction_of(caller: Caller, members: ProcessGroup, op: Any, tensor: Any) -> tuple[reduce_ops.ReduceOp, float]:
    """Return the engines' reduce op for *op*, and what it multiplies this rank's elements by: 1.0 for all but PREMUL_SUM.

    *op* is a member of this ReduceOp or of torch's own. torch defines no PRODUCT of complex numbers; the other ops that
    need an order are refused by the engine.
    """
    if op is SUM:
        return PLAIN_SUM
    kind = op.engine_op if isinstance(op, (ReduceOp, ReduceOp.RedOpType)) else _from_torch(caller, members, op)
    if kind is _PRODUCT and "complex" in str(getattr(tensor, "dtype", "")).lower():
        calls.refuse(
            caller, members, ArgumentError(f"{{op}} must be SUM, AVG or PREMUL_SUM for complex tensors, got {op}")
        )
    return kind, _factor_of(caller, members, op) if kind is _PREMUL_SUM else 1.0


def _factor_of(caller: Caller, members: ProcessGroup, op: Any) -> float:
    factor = getattr(op, "factor", None)
    if hasattr(op, "op") and not hasattr(op, "factor"):  # torch's own ReduceOp before 2.13
        factor = op.__getstate__()[1]
    if factor is None:
        calls.refuse(
            caller,
            members,
            ArgumentError(
                "{op} PREMUL_SUM needs a factor\nMake it with torch.distributed._make_nccl_premul_sum(factor)."
            ),
        )
    return float(factor)


def _from_torch(caller: Caller, members: ProcessGroup, op: Any) -> reduce_ops.ReduceOp:
    """Translate a ReduceOp of torch itself by its name; a program may have imported both."""
    error: BaseException
    try:
        if _is_of_torch(type(op)):
            kind = _engine_op(getattr(op, "op", op))
            if kind is not None:
                return kind
        error = ArgumentTypeError(f"{{op}} must be a torch.distributed.ReduceOp, got {op!r}")
    except BaseException as raised:  # what its own methods raise: the others are told of that too
        error = raised
    try:
        calls.refuse(caller, members, error)
    finally:
        del error  # its traceback holds this frame: the circle would keep the call's tensors


def _is_class_of_torch(kind: type) -> bool:
    return kind.__name__ in ("RedOpType", "ReduceOp") and kind.__module__.startswith("torch.")


def _find_engine_op(kind: Any) -> reduce_ops.ReduceOp | None:
    return reduce_ops.ReduceOp.__members__.get(_name_of(kind))


_is_of_torch: Callable[[type], bool] = functools.cache(_is_class_of_torch)
_engine_op: Callable[[Any], reduce_ops.ReduceOp | None] = functools.cache(_find_engine_op)


def _name_of(op: Any) -> str:
    return str(getattr(getattr(op, "op", op), "name", op))
