"""The engines: what carries out the collectives of a group, and which of them does so for which group."""

from __future__ import annotations

from shim.core.engines.choosing import (
    check_room,
    choose,
    choose_in,
    engine_names,
    open_engine,
    serves_devices,
    settled,
    take_settings,
    usual,
)
from shim.core.engines.place import Choice, Place

__all__ = [
    "Choice",
    "Place",
    "check_room",
    "choose",
    "choose_in",
    "engine_names",
    "open_engine",
    "serves_devices",
    "settled",
    "take_settings",
    "usual",
]
