"""Lists of ranks of which groups are made."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from operator import index
from typing import Any

from shim.core.callers import Caller
from shim.errors import ArgumentError, ShimError
from shim.frontends.torch._errors import ArgumentTypeError


def rank_lists(caller: Caller, name: str, lists: Any) -> list[list[int]]:
    """Return *lists*, which must be a list, not empty, of lists of integers, not empty."""
    if lists is None or (isinstance(lists, Sized) and len(lists) == 0):
        raise caller.explain(ArgumentError(f"{name} must not be empty, got {lists!r}"))
    try:
        parts = [[index(rank) for rank in part] for part in lists]
    except TypeError:
        raise caller.explain(ArgumentTypeError(f"{name} must be lists of integers, got {lists!r}")) from None
    if not all(parts):
        raise caller.explain(ArgumentError(f"{name} must name at least one rank for each group, got {lists!r}"))
    return parts


def require_apart(caller: Caller, name: str, parts: Sequence[Sequence[int]], allowed: Sequence[int]) -> None:
    """Raise unless every rank is one of *allowed* and occurs once."""
    ranks = [rank for part in parts for rank in part]
    try:
        for rank in ranks:
            if rank not in allowed:
                raise ArgumentError(f"{name} must be ranks of {list(allowed)}, got {rank}")
            if ranks.count(rank) > 1:
                raise ArgumentError(f"{name} must name each rank once, got {rank} {ranks.count(rank)} times")
    except ShimError as error:
        raise caller.explain(error) from None


def integer(caller: Caller, name: str, number: Any) -> int:
    try:
        return index(number)
    except TypeError:
        raise caller.explain(ArgumentTypeError(f"{name} must be an integer, got {number!r}")) from None
