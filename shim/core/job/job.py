"""What a process knows of its job before it meets the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from shim.core.job.origin import NO_ORIGIN, Origin


@dataclass(frozen=True)
class Job:
    """This process as a rank of the world, and what its launcher told of the others.

    ``key`` names the job, the same string on all its ranks. Another job on the host has it only where both were given one
    port, file or endpoint; ``origin`` finds then what tells the jobs' ranks apart.

    ``several_hosts`` is what shows that the ranks are on several hosts, as a message shows it, and empty where they are on one.
    ``hosts`` are the hosts by rank where they are known. ``local_rank`` is this rank's number among those of its host, None
    where nobody told, and ``local_size`` how many those are. ``address`` says where ranks of several hosts can meet, as host and
    port, where that was told: at rank 0. ``secret`` (SHIM_SECRET) is what they prove themselves with to each other, and ``interface``
    (SHIM_INTERFACE) the network interface that they use. Nobody refuses a job here: the engine does that, if it cannot serve it.
    """

    rank: int
    size: int
    key: str
    launcher: str
    origin: Callable[[], Origin] = field(default=lambda: NO_ORIGIN, compare=False)
    several_hosts: str = ""
    hosts: tuple[str, ...] = field(default=(), compare=False)
    local_rank: int | None = field(default=None, compare=False)
    address: str = field(default="", compare=False)
    local_size: int | None = field(default=None, compare=False)
    secret: bytes = field(default=b"", compare=False, repr=False)
    interface: str = field(default="", compare=False)

    @property
    def meeting_address(self) -> str:
        """Where the ranks meet over a network; empty where they are on one host, or nobody told."""
        return self.address if self.several_hosts else ""
