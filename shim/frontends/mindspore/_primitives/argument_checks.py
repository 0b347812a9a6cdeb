"""What the primitives' constructors ask of their arguments."""

from __future__ import annotations

from typing import Any

from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends.mindspore._errors import ArgumentTypeError
from shim.frontends.mindspore._groups.group_names import GlobalComm
from shim.frontends.mindspore._reduce_ops import REDUCE_OPS


def op_name(caller: Caller, op: object) -> str:
    """Return *op*, which must be one of MindSpore's strings."""
    if not isinstance(op, str) or op not in REDUCE_OPS:
        raise caller.explain(ArgumentTypeError(f"op must be one of {', '.join(REDUCE_OPS)}, got {op!r}"))
    return op


def integer(caller: Caller, parameter: str, value: object) -> int:
    """Return *value*, which must be an int."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise caller.explain(ArgumentTypeError(f"{parameter} must be an int, got {type(value).__name__}"))
    return value


def sequence(caller: Caller, parameter: str, value: Any) -> tuple[Any, ...]:
    """Return the elements of *value*, which must be a list or tuple."""
    if not isinstance(value, (list, tuple)):
        raise caller.explain(ArgumentTypeError(f"{parameter} must be a list or tuple, got {type(value).__name__}"))
    return tuple(value)


def integers(caller: Caller, parameter: str, value: Any, least: int = 0, count: int | None = None) -> tuple[int, ...]:
    """Return the numbers in *value*: a list or tuple of *count* int of at least *least*."""
    numbers = tuple(integer(caller, f"{parameter}'s elements", each) for each in sequence(caller, parameter, value))
    if count is not None and len(numbers) != count:
        raise caller.explain(ArgumentError(f"{parameter} must have {count} elements, got {len(numbers)}"))
    if min(numbers, default=least) < least:
        raise caller.explain(ArgumentError(f"{parameter} must not have elements below {least}, got {list(numbers)}"))
    return numbers


def or_world(group: str | None) -> str:
    """Return *group*, or the world's name for None, which some primitives take."""
    return GlobalComm.WORLD_COMM_GROUP if group is None else group
