"""What this process knows of its world."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shim.core.control import Control
    from shim.core.groups.process_group import ProcessGroup


@dataclass
class State:
    """There is one, and ``world`` alone changes it."""

    world: ProcessGroup | None = None
    token: str = ""
    process: int = 0  # the one that entered the world; a forked child has a copy of this, and no engines
    groups: dict[str, ProcessGroup] = field(default_factory=dict)
    apart: list[ProcessGroup] = field(default_factory=list)  # of no world, to be closed when the process ends
    frontends: set[str] = field(default_factory=set)
    created: int = 0  # of the last group on which all ranks agreed
    control: Control | None = None  # of the world, where its engine needs them
    hosts: tuple[int, ...] = ()  # by rank, the number of its host
    by_members: Counter[tuple[int, ...]] = field(default_factory=Counter)  # groups that these alone have made


STATE = State()
