"""A wrapper around an engine that counts its calls."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shim.core.engines.base import Engine

__all__ = ["TracedCalls"]


class TracedCalls:
    """Passes every call on to *under* and counts the calls of each collective, which ``shim.explain()`` shows.

    A call counts even if *under* then refuses it.
    """

    def __init__(self, under: Engine) -> None:
        self.under = self.itself = under
        self.counts: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        """Return what is no collective as *under* has it."""
        return getattr(self.under, name)

    def _count(self, collective: str, call: tuple[Any, ...], how: dict[str, Any]) -> Any:
        self.counts[collective] += 1
        return getattr(self.under, collective)(*call, **how)

    def broadcast(self, *call: Any, **how: Any) -> Any:
        return self._count("broadcast", call, how)

    def all_reduce(self, *call: Any, **how: Any) -> Any:
        return self._count("all_reduce", call, how)

    def reduce(self, *call: Any, **how: Any) -> Any:
        return self._count("reduce", call, how)

    def all_gather(self, *call: Any, **how: Any) -> Any:
        return self._count("all_gather", call, how)

    def gather(self, *call: Any, **how: Any) -> Any:
        return self._count("gather", call, how)

    def scatter(self, *call: Any, **how: Any) -> Any:
        return self._count("scatter", call, how)

    def reduce_scatter(self, *call: Any, **how: Any) -> Any:
        return self._count("reduce_scatter", call, how)

    def all_to_all(self, *call: Any, **how: Any) -> Any:
        return self._count("all_to_all", call, how)

    def barrier(self, *call: Any, **how: Any) -> Any:
        return self._count("barrier", call, how)

    def send(self, *call: Any, **how: Any) -> Any:
        return self._count("send", call, how)

    def receive(self, *call: Any, **how: Any) -> Any:
        return self._count("receive", call, how)

    def figures(self) -> str:
        """See ``Engine``."""
        counted = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items())) or "none"
        below = self.under.figures()
        return f"calls: {counted}" + (f"; {below}" if below else "")
