"""Where a group's ranks meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shim.core.job.origin import NO_ORIGIN, Origin

if TYPE_CHECKING:
    from shim.core.control import Control
    from shim.core.engines.base import Engine
    from shim.core.engines.choosing import Choice


@dataclass(frozen=True)
class Place:
    """One rank's seat in a group that is about to be formed.

    ``key`` is a string that all ranks of this group know; others of the host may know it where ``origin`` tells the ranks apart; ``ranks`` are the world
    ranks of the members, ``rank`` the caller's group rank; ``timeout`` is in seconds, for meeting and for every operation.
    ``world`` is the engine of the world that the group is part of, which knows when one of the ranks has gone. ``choice`` says
    which engine was chosen, on which all ranks have to agree, and why.
    ``control`` are the control connections of the world, for engines over a network, and ``hosts`` the numbers of the members' hosts; the engine that ``owns_control`` closes them.
    """

    key: str
    name: str
    ranks: tuple[int, ...]
    rank: int
    timeout: float
    world: Engine | None = None
    origin: Origin = NO_ORIGIN
    choice: Choice | None = None
    control: Control | None = None
    hosts: tuple[int, ...] = ()
    owns_control: bool = False
