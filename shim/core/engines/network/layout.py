"""Which ranks of a group share a host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """The members of a group by host. Hosts are numbered in the order of their first members, which lead them.

    ``members`` are the group ranks of each host; ``host`` and ``seat`` are where the caller is: its host, and its place there.
    """

    members: tuple[tuple[int, ...], ...]
    host: int
    seat: int

    @classmethod
    def of(cls, hosts: Sequence[int], rank: int) -> Layout:
        """Return the layout of a group whose member *i* is on host ``hosts[i]``, as group rank *rank* sees it."""
        order = list(dict.fromkeys(hosts))
        members = tuple(tuple(one for one, host in enumerate(hosts) if host == name) for name in order)
        host = order.index(hosts[rank])
        return cls(members, host, members[host].index(rank))

    @property
    def here(self) -> tuple[int, ...]:
        """The group ranks of the caller's host."""
        return self.members[self.host]

    @property
    def hosts(self) -> int:
        """How many hosts there are."""
        return len(self.members)

    @property
    def is_even(self) -> bool:
        """Whether all hosts have as many ranks."""
        return len({len(host) for host in self.members}) == 1

    @property
    def is_leader(self) -> bool:
        """Whether the caller speaks for its host."""
        return self.seat == 0

    @property
    def column(self) -> tuple[int, ...]:
        """The group ranks that the caller exchanges data with for its host, by host: those of its seat, or all leaders."""
        return tuple(host[self.seat if self.is_even else 0] for host in self.members)

    def host_of(self, rank: int) -> int:
        """Return the number of group rank *rank*'s host."""
        return next(host for host, members in enumerate(self.members) if rank in members)
