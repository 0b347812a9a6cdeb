"""What the ranks know of each other: where each is, and how a rank ended that is gone."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from shim.core.control.frames import BadFrame

_U32 = struct.Struct("<I")


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


class How(IntEnum):
    """How a rank went."""

    LEFT = 0
    DIED = 1
    CUT_OFF = 2
    BROKE = 3


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


def packed_about(host: str, host_id: str, pid: int, facts: bytes) -> bytes:
    """Return the body of an ABOUT."""
    return _with_json([host, host_id, pid], facts)


def unpacked_about(body: bytes, address: str) -> Peer:
    """Return whom the body of an ABOUT describes, who came from *address*. Raises BadFrame."""
    said, facts = _json_of(body)
    try:
        host, host_id, pid = said
        return Peer(str(host), str(host_id), int(pid), address, facts)
    except (TypeError, ValueError):
        raise BadFrame(f"a rank described itself as {said!r}") from None


def packed_roster(peers: Sequence[Peer]) -> bytes:
    """Return the body of a ROSTER: each host once, each rank as the number of its host, its pid, address and length of its facts."""
    hosts: dict[tuple[str, str], int] = {}
    rows = [
        [hosts.setdefault((peer.host, peer.host_id), len(hosts)), peer.pid, peer.address, len(peer.facts)]
        for peer in peers
    ]
    return _with_json([list(hosts), rows], b"".join(peer.facts for peer in peers))


def unpacked_roster(body: bytes) -> tuple[Peer, ...]:
    """Return all ranks' descriptions. Raises BadFrame."""
    said, facts = _json_of(body)
    peers = []
    at = 0
    try:
        hosts, rows = said
        hosts = [(str(name), str(number)) for name, number in hosts]
        for host, pid, address, length in rows:
            name, host_id = hosts[host]
            peers.append(Peer(name, host_id, int(pid), str(address), facts[at : at + length]))
            at += length
    except (TypeError, ValueError, IndexError):
        raise BadFrame("rank 0 described the ranks in another form") from None
    return tuple(peers)


def _with_json(said: object, more: bytes) -> bytes:
    text = json.dumps(said, separators=(",", ":")).encode()
    return _U32.pack(len(text)) + text + more


def _json_of(body: bytes) -> tuple[list[Any], bytes]:
    try:
        (length,) = _U32.unpack_from(body)
        said = json.loads(body[_U32.size : _U32.size + length])
    except (struct.error, ValueError):
        raise BadFrame("a rank's description is no JSON") from None
    return said if isinstance(said, list) else [], body[_U32.size + length :]
