"""Who am I, and where are the others: read from explicit arguments or from a launcher's environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Identity", "locate"]


@dataclass(frozen=True)
class Identity:
    """This process as a rank of the world; ``key`` names the job, the same string on all its ranks and on no others."""

    rank: int
    size: int
    key: str
    launcher: str


def locate(
    rank: int | None = None,
    world_size: int | None = None,
    init_method: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Identity:
    """Return this process's place in the world."""
    r = int(environment.get("RANK", 0)) if rank is None else rank
    n = int(environment.get("WORLD_SIZE", 1)) if world_size is None else world_size
    return Identity(r, n, f"env:{environment.get('MASTER_PORT', os.getpid())}", "environment")
