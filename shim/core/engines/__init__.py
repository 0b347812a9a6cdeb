"""The engines: what carries out the collectives of a group, and which of them does so for which group."""

from __future__ import annotations

from shim.core.engines.choosing import Choice, check_room, choose, open_engine
from shim.core.engines.place import Place

__all__ = ["Choice", "Place", "check_room", "choose", "open_engine"]
