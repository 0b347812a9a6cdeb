"""Where a group's ranks meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shim.core.engines.base import Engine

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """One rank's seat in a group that is about to be formed.

    ``key`` is a string that all ranks of this group, and no others on the host, know; ``ranks`` are the world
    ranks of the members, ``rank`` the caller's group rank; ``timeout`` is in seconds, for meeting and for every operation.
    ``world`` is the engine of the world that the group is part of, which knows when one of the ranks has gone.
    """

    key: str
    name: str
    ranks: tuple[int, ...]
    rank: int
    timeout: float
    world: Engine | None = None
