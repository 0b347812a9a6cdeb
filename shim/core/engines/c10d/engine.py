"""The engine over gloo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shim.core.engines.c10d.link import GlooLink
from shim.core.engines.network.connecting import connected
from shim.core.engines.network.engine import NetworkEngine

if TYPE_CHECKING:
    from shim.core.engines.place import Place


def gloo_link(place: Place, key: str, ranks: tuple[int, ...]) -> GlooLink:
    """Connect the world ranks *ranks*, this one among them, under a *key* that only they use."""
    control = place.control
    assert control is not None
    address = control.peers[control.rank].address or "127.0.0.1"
    return GlooLink(control, key, ranks, address, place.timeout)


class C10dEngine(NetworkEngine):
    """See ``NetworkEngine``."""

    name = "c10d"

    def __init__(self, place: Place) -> None:
        super().__init__(place, connected(place, lambda: gloo_link(place, place.key, place.ranks)))
