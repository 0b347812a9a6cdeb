"""The engines, by name, and which of them serves a group."""

from __future__ import annotations

from shim.core.engines.base import Engine
from shim.core.engines.place import Place

__all__ = ["Engine", "Place", "check_room", "open_engine"]


def open_engine(place: Place) -> Engine:
    """Return an engine for the group at *place*, once all its ranks have met.

    All ranks of a world are on one host (``rendezvous.locate`` refuses others), which is what ``shared_memory`` serves.
    """
    from shim.core.engines.shared_memory import SharedMemoryEngine

    return SharedMemoryEngine(place)


def check_room(ranks: int) -> None:
    """Raise EngineError where a group of so many *ranks* would lack something on this one, before the others wait for it."""
    from shim.core.engines.shared_memory import check_room

    check_room(ranks)
