"""The exchanges that are under way in a hub: each ends when its last member has come, or a member is gone."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection

from shim.core.control.frames import Kind
from shim.core.sockets.frames import LARGEST, BadFrame, Fields, packed_ranks

_U32 = struct.Struct("<I")


class Exchange:
    """What the *members* have given so far, by rank, with the numbers of their requests."""

    def __init__(self, members: list[int]) -> None:
        self.members = members
        self.numbers = frozenset(members)
        self.given: dict[int, tuple[int, bytes]] = {}
        self.gave_up: set[int] = set()

    def missing(self) -> list[int]:
        """Return who has never come; only where all have, who has given up: those whose time is up a moment earlier are not to blame."""
        absent = [member for member in self.members if member not in self.given]
        return [member for member in absent if member not in self.gave_up] or absent


class Exchanges:
    """All open exchanges. *send* sends a frame to a rank."""

    def __init__(self, send: Callable[..., None]) -> None:
        self._send = send
        self._open: dict[tuple[str, bytes], Exchange] = {}
        self._of_request: dict[tuple[int, int], tuple[str, bytes]] = {}

    def take(self, rank: int, fields: Fields, gone: Collection[int]) -> None:
        """Take what *rank* gives; end the exchange if it was the last, or if a member is among those *gone*."""
        number, key = fields.number(), fields.text()
        name = (key, fields.packed_ranks())
        exchange = self._open.get(name)
        if exchange is None:
            exchange = self._open[name] = Exchange(Fields(name[1]).ranks())
        if rank not in exchange.numbers or rank in exchange.given:
            raise BadFrame(f"rank {rank} cannot take part in exchange {key!r}")
        exchange.given[rank] = (number, fields.rest())
        self._of_request[rank, number] = name
        if len(exchange.given) == len(exchange.members):
            self._complete(name, exchange)
        elif gone:
            self._fail_if_gone(name, exchange, gone)

    def withdraw(self, rank: int, number: int) -> bool:
        """Take back what *rank* gave, and tell it who had not come; return whether there was such an exchange still."""
        name = self._of_request.pop((rank, number), None)
        if name is None:
            return False
        exchange = self._open[name]
        missing = exchange.missing()
        del exchange.given[rank]
        exchange.gave_up.add(rank)
        if not exchange.given:
            del self._open[name]
        self._send(rank, Kind.MISSING, _U32.pack(number), packed_ranks(missing))
        return True

    def lose(self, gone: Collection[int]) -> None:
        """End the exchanges of which a member is gone."""
        for name, exchange in list(self._open.items()):
            self._fail_if_gone(name, exchange, gone)

    def _complete(self, name: tuple[str, bytes], exchange: Exchange) -> None:
        payloads = [exchange.given[member][1] for member in exchange.members]
        lengths = [len(payload) for payload in payloads]
        kind, body = Kind.EXCHANGED, packed_ranks(lengths)
        if sum(lengths) + len(body) + _U32.size > LARGEST:
            kind, body = Kind.TOO_LARGE, packed_ranks([])
        else:
            body += b"".join(payloads)
        # Rank 0 last: it may end its process when it has its own, and the others' are sent by then.
        for rank, (number, _) in sorted(exchange.given.items(), reverse=True):
            del self._of_request[rank, number]
            self._send(rank, kind, _U32.pack(number), body)
        del self._open[name]

    def _fail_if_gone(self, name: tuple[str, bytes], exchange: Exchange, gone: Collection[int]) -> None:
        lost = [member for member in exchange.members if member in gone]
        if not lost:
            return
        del self._open[name]
        for rank, (number, _) in exchange.given.items():
            del self._of_request[rank, number]
            self._send(rank, Kind.LOST, _U32.pack(number), packed_ranks(lost))
