"""The hub of a meeting, in rank 0's process: it lets the ranks in, passes on what they say, and tells all of them who has gone.

It lives on its loop's thread and is touched by nothing else. Rank 0's own frames come by ``handle`` and go to *deliver*, without a socket.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Sequence

from shim.core.control.authentication import SessionKeys
from shim.core.control.exchanges import Exchanges
from shim.core.control.frames import Kind, packed_roster, unpacked_about
from shim.core.control.handshakes import Handshakes
from shim.core.control.peers import Ending, Peer, shown_ranks
from shim.core.job.stores.table import Operation, SharedTable
from shim.core.sockets.connection import Connection, Heart, How
from shim.core.sockets.frames import BadFrame, Fields, packed_ranks, packed_text
from shim.core.sockets.loop import Loop

_U32 = struct.Struct("<I")
_GONE = struct.Struct("<BI")
_GATHER = 0.01  # seconds between two messages about ranks that went
# Telling takes at most a tenth of the time. Otherwise, when all ranks leave at once, each leaving would be told to each rank.
_SHARE = 10
# A rank that waits for a value, with the number of its request; None where none is to be given.
_Asker = tuple[int, int] | None


class Hub:
    """Serves a world of *size* ranks, of which *me* is rank 0."""

    def __init__(self, loop: Loop, size: int, me: Peer, deliver: Callable[[Kind, bytes], None], gap: float) -> None:
        self.loop = loop
        self._size = size
        self._deliver = deliver
        self._links: dict[int, Connection[Kind]] = {}
        self._peers: dict[int, Peer] = {0: me}
        self._gave_up: set[int] = set()  # of those that came to the meeting and left it
        self._gone: dict[int, Ending] = {}
        self._untold: list[int] = []  # of those gone
        self._told: set[int] = set()  # the others of them: an exchange fails when its members know why
        self._tells_next = 0.0
        self._will_tell = False
        self._is_complete = False
        self._exchanges = Exchanges(self.send)
        self._values: SharedTable[_Asker] = SharedTable(self._give_value)
        self._failure: tuple[bytes, ...] = ()  # of the meeting, once there is one
        self._told_failure: set[int] = set()
        self._heart = Heart(loop, Kind.BEAT, gap, self._cut_off)
        self._handshakes: Handshakes | None = None

    # The meeting.

    def open(self, listener: socket.socket | None, job: bytes, secret: bytes) -> None:
        """Let the other ranks in, who come to *listener*."""
        if listener is not None:
            self._handshakes = Handshakes(self.loop, listener, job, self._size, secret, self._welcome, self._mistaken)
            self._handshakes.open()
        self._complete_if_all_are_there()

    def missing(self) -> list[int]:
        """Return the ranks that have never come, or if there are none, those that have left again.

        Ranks whose time is up a moment earlier than others' are not to blame.
        """
        absent = [rank for rank in range(self._size) if rank not in self._peers]
        return [rank for rank in absent if rank not in self._gave_up] or absent

    def notes(self) -> list[str]:
        """Return what happened in the handshakes that may explain who is missing."""
        notes = self._handshakes.notes if self._handshakes is not None else {}
        return [text if times == 1 else f"{text} ({times} times)" for text, times in notes.items()]

    def fail(self, kind: str, ranks: Sequence[int], text: str) -> None:
        """Tell all that came, and those that are yet to come, that there is no world. The first reason counts."""
        if self._failure or self._is_complete:
            return
        self._failure = (packed_text(kind), packed_ranks(ranks), text.encode(errors="replace"))
        self._told_failure.update(self._links)
        for rank in (*self._links, 0):
            self.send(rank, Kind.FAILED, *self._failure)

    def has_told_all(self) -> bool:
        """Tell whether every other rank has been told that there is no world. Any thread may ask."""
        return len(self._told_failure) == self._size - 1

    def _mistaken(self, rank: int, why: str) -> None:
        if 0 < rank < self._size:
            self._told_failure.add(rank)
        self.fail("StateError", [rank], why)

    def unsent(self) -> int:
        """Return how many bytes wait for ranks to read them. Any thread may ask."""
        return sum(link.unsent for link in list(self._links.values()))

    def close(self) -> None:
        """End all connections. On the loop's thread."""
        self._close_handshakes()
        for rank, link in list(self._links.items()):
            self._drop(rank, link)
        self.loop.stop()

    def _close_handshakes(self) -> None:
        if self._handshakes is not None:
            self._handshakes.close()

    def _welcome(self, rank: int, sock: socket.socket, address: str, keys: SessionKeys, already: bytes) -> None:
        guest = _Newcomer(self, rank, address)
        link = Connection(self.loop, sock, Kind, (keys.from_hub, keys.to_hub), guest.hear, guest.lose)
        guest.link = link
        link.start(already)

    def _admit(self, rank: int, link: Connection[Kind], peer: Peer) -> bool:
        """Take *peer* as a rank, unless it is there already: then tell it so."""
        first = self._peers.get(rank)
        if first is not None:
            text = (
                f"rank {rank} came twice: as process {first.pid} on host {first.host} ({first.address}) "
                f"and as process {peer.pid} on host {peer.host} ({peer.address})\nStart each rank once."
            )
            self.fail("StateError", [rank], text)
        if self._failure:
            self._told_failure.add(rank)
            link.send(Kind.FAILED, *self._failure)
            return False
        self._peers[rank], self._links[rank] = peer, link
        self._heart.add(link)
        self._complete_if_all_are_there()
        return True

    def _complete_if_all_are_there(self) -> None:
        if self._is_complete or len(self._peers) < self._size:
            return
        self._is_complete = True
        self._close_handshakes()  # whoever comes now is of another job, which may need the port
        roster = packed_roster([self._peers[rank] for rank in range(self._size)])
        for rank in (*range(1, self._size), 0):
            self.send(rank, Kind.ROSTER, roster)

    # Frames.

    def send(self, rank: int, kind: Kind, *pieces: bytes) -> None:
        """Send a frame to a rank; to one that has gone it is dropped."""
        if rank == 0:
            if 0 not in self._gone:
                self._deliver(kind, b"".join(pieces))
        elif (link := self._links.get(rank)) is not None:
            link.send(kind, *pieces)

    def handle(self, rank: int, kind: Kind, body: bytes) -> None:
        """Carry out a frame of *rank*. Raises BadFrame."""
        fields = Fields(body)
        if kind is Kind.BEAT:
            return
        if kind is Kind.LEAVE:
            self._left(rank, fields.text())
        elif kind is Kind.WITHDRAW and not self._is_complete:
            missing = self.missing()
            self.send(rank, Kind.MISSING, fields.take(4), packed_ranks(missing), "; ".join(self.notes()).encode())
        elif not self._is_complete:
            raise BadFrame(f"rank {rank} sent {kind.name} before the ranks had met")
        elif kind is Kind.EXCHANGE:
            self._exchanges.take(rank, fields, self._told)
        elif kind is Kind.WITHDRAW:
            self._withdraw(rank, fields.number())
        elif kind is Kind.TELL:
            self._tell(rank, fields)
        elif kind is Kind.PUT:
            self._values.ask(None, Operation.SET, [fields.text().encode(), fields.rest()])
        elif kind is Kind.DROP:
            self._values.ask(None, Operation.DELETE, [fields.text().encode()])
        elif kind is Kind.GET:
            self._values.ask((rank, fields.number()), Operation.GET, [fields.text().encode()])
        else:
            raise BadFrame(f"rank {rank} sent {kind.name}, which only rank 0 may send")

    def _tell(self, sender: int, fields: Fields) -> None:
        topic, ranks, payload = fields.text(), fields.ranks(), fields.rest()
        head = packed_text(topic) + _U32.pack(sender)
        for rank in ranks:
            self.send(rank, Kind.TOLD, head, payload)

    def _give_value(self, asker: _Asker, values: Sequence[bytes]) -> None:
        if asker is not None:
            self.send(asker[0], Kind.VALUE, _U32.pack(asker[1]), *values)

    def _withdraw(self, rank: int, number: int) -> None:
        """End a request that lasts too long; it is answered, unless it has been."""
        if self._exchanges.withdraw(rank, number):
            return
        if self._values.waiting.pop((rank, number), None) is not None:
            self.send(rank, Kind.MISSING, _U32.pack(number), packed_ranks([]))

    # Endings.

    def _left(self, rank: int, why: str) -> None:
        link = self._links.get(rank)
        if link is not None:
            self._drop(rank, link)
        self._end([rank], Ending(How.LEFT, time.monotonic(), why))
        if rank == 0:
            self.tell_endings()  # at once: its process may end

    def lose(self, rank: int, how: How, why: str) -> None:
        """Take note that the connection to *rank* has ended without a word."""
        link = self._links.get(rank)
        if link is not None:
            self._drop(rank, link)
            peer = self._peers[rank]
            if how is How.CUT_OFF:
                self._end([rank], Ending(how, link.last_heard, f"host {peer.host} ({peer.address})"))
            else:
                self._end([rank], Ending(how, time.monotonic(), why))

    def _cut_off(self, link: Connection[Kind], silence: float) -> None:
        """Give up a host that does not answer: all ranks there that have not been heard of for half as long."""
        lost = next((rank for rank, other in self._links.items() if other is link), None)
        if lost is None:
            return
        peer = self._peers[lost]
        same = [
            rank
            for rank, other in self._links.items()
            if other is link or (self._peers[rank].host_id == peer.host_id and other.silence() > silence / 2)
        ]
        shown = f"host {peer.host} ({peer.address}{f', {shown_ranks(same)}' if len(same) > 1 else ''})"
        for rank in same:
            gone = self._links[rank]
            gone.send(Kind.EXPELLED, packed_text(f"{shown} could not be reached from rank 0 for {silence:.1f} s"))
            self._drop(rank, gone)
        self._end(same, Ending(How.CUT_OFF, time.monotonic() - silence, shown))

    def _drop(self, rank: int, link: Connection[Kind]) -> None:
        del self._links[rank]
        self._heart.remove(link)
        link.close()
        for asker in [asker for asker in self._values.waiting if asker is not None and asker[0] == rank]:
            del self._values.waiting[asker]

    def _end(self, ranks: Sequence[int], ending: Ending) -> None:
        if not self._is_complete:  # whoever went may be started again
            for rank in ranks:
                peer = self._peers.pop(rank)
                self._gave_up.add(rank)
                if self._handshakes is not None:
                    self._handshakes.note(f"rank {rank}{ending.shown(peer)} before all ranks had come")
            return
        for rank in ranks:
            if rank not in self._gone:
                self._gone[rank] = ending
                self._untold.append(rank)
        if not self._will_tell:
            self._will_tell = True
            self.loop.call_later(max(0.0, self._tells_next - time.monotonic()), self.tell_endings)

    def tell_endings(self) -> None:
        """Tell all ranks of those that have gone since this was last done."""
        untold, self._untold, self._will_tell = self._untold, [], False
        began = time.monotonic()
        alike: dict[tuple[How, str], list[int]] = {}
        for rank in untold:
            alike.setdefault((self._gone[rank].how, self._gone[rank].why), []).append(rank)
        for (how, why), ranks in alike.items():
            passed = int((began - min(self._gone[rank].since for rank in ranks)) * 1000)
            body = _GONE.pack(how, passed) + packed_ranks(ranks) + packed_text(why)
            for rank in (*self._links, 0):
                self.send(rank, Kind.GONE, body)
        self._told.update(untold)
        self._exchanges.lose(self._told)
        now = time.monotonic()
        self._tells_next = now + max(_GATHER, _SHARE * (now - began))
        if not self._links and 0 in self._gone:
            self.loop.stop()


class _Newcomer:
    """A connection whose end has proved that it has the secret, until it says who it is, and then that of a rank."""

    def __init__(self, hub: Hub, rank: int, address: str) -> None:
        self._hub, self._rank, self._address = hub, rank, address
        self._is_rank = False
        self.link: Connection[Kind] | None = None

    def hear(self, kind: Kind, body: bytes) -> None:
        if self._is_rank:
            self._hub.handle(self._rank, kind, body)
            return
        if kind is Kind.CANNOT and self.link is not None:
            self._hub._mistaken(self._rank, f"rank {self._rank} cannot come: {body.decode(errors='replace')}")
            self.link.close()
            return
        if kind is not Kind.ABOUT or self.link is None:
            raise BadFrame(f"rank {self._rank} sent {kind.name} before it said who it is")
        self._is_rank = self._hub._admit(self._rank, self.link, unpacked_about(body, self._address))

    def lose(self, how: How, why: str) -> None:
        if self._is_rank:
            self._hub.lose(self._rank, how, why)
