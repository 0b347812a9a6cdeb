"""What carries the data of one group's tensors on devices, as its messages and operations see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from shim.errors import EngineError, PeerLostError

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.base import Engine
    from shim.errors import ShimError

__all__ = ["Links", "loss_in"]


class Links(Protocol):
    """Of rank *rank* among *size*. An event is what the library of the device calls so: a point in a stream, which another one can wait for."""

    rank: int
    size: int
    ended_by: str  # an error that ended the operations, of which the other ranks may not know yet

    def settle_device(self, number: int) -> None:
        """Keep to device *number*. Raises TensorError where the group uses another one."""

    def event_before(self, request: Request) -> Any:
        """Return an event behind what is now on the stream that is current for *request*: what comes there later may wait for the operation."""

    def order_after(self, end: Any, request: Request) -> None:
        """Have what comes next on the stream that is current here come after *end*. Raises what has ended the operation before."""

    def is_reached(self, end: Any) -> bool:
        """Tell whether what *end* is behind has ended."""

    def check_intact(self) -> None:
        """Raise what has ended the links, after which the outputs of operations are undefined."""

    def end(self, error: ShimError) -> None:
        """End all operations, and refuse more with *error*."""


def loss_in(under: Engine, rank: int, size: int) -> ShimError | None:
    """Return what is to end the operations of *rank* among *size* on devices: a rank of *under* is lost, or a call of it has failed."""
    others = [other for other in range(size) if other != rank]
    lost = [other for other in others if under.is_gone(other) and not under.has_left(other)]
    if lost:
        endings = (under.ending_of(other) or f"rank {other} gave the group up" for other in lost)
        error = PeerLostError(f"operations on devices were ended: {'; '.join(endings)}")
        error.ranks = tuple(lost)
        return error
    return (
        None if under.is_usable() else EngineError("operations on devices were ended: a call of the group has failed")
    )
