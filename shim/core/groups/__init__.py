"""The world and its process groups: who belongs to them, under which rank, and for how long."""

from __future__ import annotations

from shim.core.groups.world import *  # noqa: F403  # all that it lists
from shim.core.groups.world import __all__ as _names

__all__ = [*_names]
