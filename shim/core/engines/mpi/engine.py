"""The engine over MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from shim.core.engines.mpi.link import MpiLink
from shim.core.engines.network.connecting import connected, exchange_at
from shim.core.engines.network.engine import NetworkEngine

if TYPE_CHECKING:
    from shim.core.engines.place import Place

__all__ = ["MpiEngine", "mpi_link"]


def mpi_link(place: Place, key: str, ranks: tuple[int, ...]) -> MpiLink:
    """Connect the world ranks *ranks*, this one among them, under a *key* that only they use."""
    control = place.control
    assert control is not None
    return MpiLink(ranks, control.rank, control.size, crc32(key.encode()), exchange_at(place, f"MPI {key}", ranks))


class MpiEngine(NetworkEngine):
    """See ``NetworkEngine``."""

    name = "mpi"

    def __init__(self, place: Place) -> None:
        super().__init__(place, connected(place, lambda: mpi_link(place, place.key, place.ranks)))
