"""An engine with nothing but the defaults, over the messages and the agreement of another engine.

Do not use it for work: it shows that an engine needs no more, and tests compare other engines with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shim.core.engines.base import Engine, Request, Tensor

if TYPE_CHECKING:
    from shim.core.engines.place import Place
    from shim.core.work import EngineWork

__all__ = ["PlainEngine"]


class PlainEngine(Engine):
    """Sends, receives and agrees by means of *under*, which serves the same group, and which it closes."""

    name = "plain"

    def __init__(self, place: Place, under: Engine) -> None:
        self.rank, self.size = place.rank, len(place.ranks)
        self.under = under

    def arrive(self, request: Request, move: Callable[[Request], object], now: bool = False) -> EngineWork | None:
        """See ``Engine``."""
        return self.under.arrive(request, move, now)

    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> EngineWork | None:
        """See ``Engine``."""
        return self.under.send(tensor, peer, tag, now)

    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> EngineWork | int:
        """See ``Engine``."""
        return self.under.receive(tensor, peer, tag, now)

    def refuse(self, reason: str) -> None:
        """See ``Engine``."""
        self.under.refuse(reason)

    def is_gone(self, rank: int) -> bool:
        """See ``Engine``."""
        return self.under.is_gone(rank)

    def ending_of(self, rank: int) -> str:
        """See ``Engine``."""
        return self.under.ending_of(rank)

    def is_usable(self) -> bool:
        """See ``Engine``."""
        return self.under.is_usable()

    def set_timeout(self, seconds: float) -> None:
        """See ``Engine``."""
        self.under.set_timeout(seconds)

    def close(self, why: str = "") -> None:
        """See ``Engine``."""
        self.under.close(why)
