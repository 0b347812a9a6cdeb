"""Where ranks that share a device wait for each other: in host memory, so that nothing on the device waits for what is not there yet."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shim.core.engines.base import Engine


class HostExchange:
    """The ranks *members* of the group that *under* serves, of which the caller is number *rank*. Nobody else uses *tag* between them."""

    def __init__(self, under: Engine, members: Sequence[int], rank: int, tag: int) -> None:
        self.under, self.members, self.rank, self.tag = under, members, rank, tag

    def exchange(self, mine: bytes, timeout: float = -1.0) -> list[bytes]:
        """Return what each rank gives, which is of one size, when all have come. Raises PeerLostError if one does not, and after *timeout* seconds."""
        given = [bytearray(mine) for _ in self.members]
        others = [rank for rank in range(len(self.members)) if rank != self.rank]
        works: list[Any] = [
            self.under.send(bytearray(mine), self.members[rank], self.tag, False) for rank in others
        ] + [self.under.receive(given[rank], self.members[rank], self.tag, False) for rank in others]
        for work in works:
            work.start()
        deadline = time.monotonic() + timeout
        for work in works:
            work.wait(-1.0 if timeout < 0 else max(0.0, deadline - time.monotonic()))
        return [bytes(one) for one in given]

    def is_alone(self) -> bool:
        """Tell whether the processes of all other ranks have ended."""
        return all(self.under.has_ended(member) for rank, member in enumerate(self.members) if rank != self.rank)
