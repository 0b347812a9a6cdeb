"""An engine that stands on another one of the same group."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shim.core.engines.base import Engine, Request, Tensor

if TYPE_CHECKING:
    from shim.core.work import EngineWork


class Layer(Engine):
    """Asks *under*, in which this rank is *rank* among *size*, for all that it does not do itself.

    Of the collectives it has the defaults, which agree, send and receive by means of *under*.
    """

    def __init__(self, under: Engine, rank: int, size: int) -> None:
        self.under, self.rank, self.size = under, rank, size

    def arrive(self, request: Request, move: Callable[[Request], object], now: bool = False) -> EngineWork | None:
        return self.under.arrive(request, move, now)

    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> EngineWork | None:
        return self.under.send(tensor, peer, tag, now)

    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> EngineWork | int:
        return self.under.receive(tensor, peer, tag, now)

    def refuse(self, reason: str) -> None:
        self.under.refuse(reason)

    def give_up(self, why: str) -> None:
        self.under.give_up(why)

    def is_gone(self, rank: int) -> bool:
        return self.under.is_gone(rank)

    def has_left(self, rank: int) -> bool:
        return self.under.has_left(rank)

    def ending_of(self, rank: int) -> str:
        return self.under.ending_of(rank)

    def has_ended(self, rank: int) -> bool:
        return self.under.has_ended(rank)

    def is_usable(self) -> bool:
        return self.under.is_usable()

    def set_timeout(self, seconds: float) -> None:
        self.under.set_timeout(seconds)

    def close(self, why: str = "") -> None:
        self.under.close(why)
