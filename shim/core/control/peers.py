"""What the ranks know of each other: where each is, and how a rank ended that is gone."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from shim.core.sockets.connection import How


@dataclass(frozen=True)
class Peer:
    """A rank, as it described itself to rank 0.

    ``host`` is its host's name. Ranks with the same ``host_id`` are on one host and can share memory. ``pid`` is its process's
    number there. ``address`` is the IP address from which rank 0 saw it come; for rank 0 that at which it was met.
    ``facts`` are the bytes that the rank gave to the meeting.
    """

    host: str
    host_id: str
    pid: int
    address: str
    facts: bytes


@dataclass(frozen=True)
class Ending:
    """How and when, on this process's monotonic clock, a rank went. ``why`` is its reason, or the host that is cut off."""

    how: How
    since: float
    why: str = ""

    def shown(self, peer: Peer) -> str:
        """Return what follows "rank 2" in a sentence about *peer*'s end."""
        passed = time.monotonic() - self.since
        if self.how is How.LEFT:
            return f" left the group{f' ({self.why})' if self.why else ''}"
        if self.how is How.DIED:
            return f"'s process (pid {peer.pid} on host {peer.host}) died {passed * 1000:.0f} ms ago"
        if self.how is How.CUT_OFF:
            return f"'s {self.why or f'host {peer.host} ({peer.address})'} cannot be reached since {passed:.1f} s"
        return f" was disconnected {passed:.1f} s ago: {self.why}"


def shown_ranks(ranks: Iterable[int]) -> str:
    """Return "rank 2" or "ranks 0, 2-5 and 7"."""
    numbers = sorted(set(ranks))
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [text for run in runs for text in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))]
    if len(numbers) == 1:
        return f"rank {texts[0]}"
    return "ranks " + " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))
