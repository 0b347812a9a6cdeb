"""What stands where a group has no engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shim.errors import ShimError


def absence(why: Callable[[], ShimError]) -> Any:
    """Return what stands in for an engine."""
    return _Absence(why)


class _Absence:
    """Raises what *why* returns, whatever is asked of it, so that a group need not look with every call whether its engine is there."""

    __slots__ = ("_why",)

    def __init__(self, why: Callable[[], ShimError]) -> None:
        self._why = why

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python itself asks, as in copying
            raise AttributeError(name)
        raise self._why()
