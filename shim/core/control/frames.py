"""What the frames of control connections say: their kinds, and the bodies with which the ranks describe themselves."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from shim.core.control.peers import Peer
from shim.core.sockets.frames import BadFrame

_U32 = struct.Struct("<I")


class Kind(IntEnum):
    """What a frame says. The first group goes to rank 0's hub, the second comes from it, the third goes both ways."""

    ABOUT = 1  # host name, host id, pid; the facts
    EXCHANGE = 2  # number, key, members, payload
    WITHDRAW = 3  # the number of an exchange, or 0 for the meeting, that lasts too long
    PUT = 4  # key, value
    GET = 5  # number, key
    TELL = 6  # topic, ranks, payload
    DROP = 7  # key
    CANNOT = 8  # in place of an ABOUT: why the rank cannot come

    ROSTER = 20  # all ranks' ABOUTs
    FAILED = 21  # the meeting: the error's class, ranks, text
    EXCHANGED = 22  # number, the members' payloads
    LOST = 23  # number of an exchange, the members that are gone
    MISSING = 24  # number, the members that had not come when it was withdrawn
    TOO_LARGE = 29  # number of an exchange whose payloads are too large together
    VALUE = 25  # number, value
    TOLD = 26  # topic, sender, payload
    GONE = 27  # how, milliseconds since then, ranks, why
    EXPELLED = 28  # why rank 0 ends this connection

    LEAVE = 40  # why
    BEAT = 41  # nothing: the network between the two works


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
