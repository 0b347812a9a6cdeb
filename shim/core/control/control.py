"""The control connections of a rank: small messages to the others through rank 0, and the word of who has gone."""

from __future__ import annotations

import itertools
import os
import struct
import threading
import time
from collections.abc import Callable, Sequence

from shim.core.control.frames import Kind, unpacked_roster
from shim.core.control.inbox import Inquiry, Request, Topics
from shim.core.control.links import Link
from shim.core.control.meeting import Meeting
from shim.core.control.peers import Ending, Peer, shown_ranks
from shim.core.sockets.connection import How
from shim.core.sockets.frames import LARGEST, BadFrame, Fields, packed_ranks, packed_text
from shim.core.sockets.loop import Loop, report
from shim.errors import ArgumentError, CollectiveTimeoutError, PeerLostError, StateError

_U32 = struct.Struct("<I")
_GONE = struct.Struct("<BI")
_FOR_AN_ANSWER = 2.0  # seconds that the hub has to say who did not come
_FOR_A_SIGN = 1.0


class Control:
    """This rank's end of the control connections. Made by ``meet``; any thread may use it.

    Handlers run on the control thread, one at a time, and must not wait for anything that comes by it: no ``exchange``, ``get`` or ``ask`` in them.
    In a forked child nothing can be used: the connections are its parent's.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        # Seals what the ranks send each other by other ways; the same on all of them, where they have a secret.
        self.seal_key = b""
        self.job: Meeting | None = None  # as it was met for
        self.before_close: list[Callable[[], None]] = []
        self._link: Link | None = None
        self._process = os.getpid()
        self._roster: bytes | None = None
        self._peers: tuple[Peer, ...] | None = None
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()  # of the three below
        self.met = Request()  # number 0: answered by the roster, or by why there is none
        self._requests: dict[int, Request] = {0: self.met}
        self._endings: dict[int, Ending] = {}
        self._exchanging: set[tuple[str, tuple[int, ...]]] = set()
        self._hub_is_lost = False
        self._is_closed = False
        self._gone_handlers: list[Callable[[int], None]] = []  # the control thread's
        self._topics = Topics()
        self._topics.listen(_ANSWERS, self._take_answer)

    def attach(self, link: Link) -> None:
        """Give the way to the hub, before anything is sent."""
        self._link = link
        self.answer(_PRESENCE, lambda asker, question: b"")

    @property
    def loop(self) -> Loop:
        """What serves the connections."""
        return self._way().loop

    # What is known of the others.

    @property
    def peers(self) -> tuple[Peer, ...]:
        """All ranks' descriptions, by rank."""
        if self._peers is None:
            assert self._roster is not None, "the ranks have not met"
            self._peers = unpacked_roster(self._roster)
        return self._peers

    def is_gone(self, rank: int) -> bool:
        """Tell whether *rank* has left, died, or is on a host that cannot be reached, as far as is known by now."""
        return rank in self._endings

    def ending_of(self, rank: int) -> str:
        """Return what follows "rank 2" in a sentence about how it went; empty while it is there."""
        ending = self._endings.get(rank)
        return "" if ending is None else ending.shown(self.peers[rank])

    @property
    def knows_of_others(self) -> bool:
        """Whether the hub still tells who goes: not after rank 0's process, or the way to it, was lost."""
        return not self._hub_is_lost

    def await_presence(self, ranks: Sequence[int]) -> None:
        """Wait until each of *ranks* has shown that it is there or is known to be gone, a second at most for those that are busy."""
        self.ask(_PRESENCE, ranks, b"", _FOR_A_SIGN)

    def has_left(self, rank: int) -> bool:
        """Tell whether *rank* is gone because it said so, and not because its process or host was lost."""
        ending = self._endings.get(rank)
        return ending is not None and ending.how is How.LEFT

    def when_gone(self, handler: Callable[[int], None]) -> Callable[[], None]:
        """Have *handler* called, on the control thread, with each rank that goes, and with those that have gone already.

        Return a function that ends this.
        """
        loop = self._way().loop
        loop.call(self._add_gone_handler, handler)
        return lambda: loop.call(self._remove_gone_handler, handler)

    def _add_gone_handler(self, handler: Callable[[int], None]) -> None:
        self._gone_handlers.append(handler)
        for rank in list(self._endings):
            report(handler, rank)

    def _remove_gone_handler(self, handler: Callable[[int], None]) -> None:
        if handler in self._gone_handlers:
            self._gone_handlers.remove(handler)

    # Messages.

    def exchange(self, key: str, members: Sequence[int], payload: bytes, timeout: float) -> list[bytes]:
        """Give *payload* to the *members* that call this with the same *key* and members; return theirs, in the members' order.

        Raises PeerLostError where one is gone, and CollectiveTimeoutError that names those that did not come within *timeout* seconds.
        Several threads may exchange at once with different keys; a key may serve again afterwards.
        """
        self._check_members(members, len(payload))
        if len(members) == 1:
            return [bytes(payload)]
        name = (key, tuple(members))
        with self._lock:
            if name in self._exchanging:
                raise StateError(
                    f"exchange: another thread of rank {self.rank} is exchanging {key!r} with the same ranks"
                )
            self._exchanging.add(name)
        try:

            def what() -> str:
                return f"exchange {key!r} among {shown_ranks(members)}"

            head = packed_text(key) + packed_ranks(members)
            kind, fields = self._asked(Kind.EXCHANGE, (head, payload), timeout, what)
            if kind is not Kind.EXCHANGED:
                raise self._failure(kind, fields, what(), timeout)
            return [fields.take(length) for length in fields.ranks()]
        finally:
            with self._lock:
                self._exchanging.discard(name)

    def put(self, key: str, value: bytes) -> None:
        """Keep *value* under *key* in rank 0's process, for ``get`` on any rank. A later value takes the place of an earlier one."""
        self._check_length(len(value))
        self._way().send(Kind.PUT, packed_text(key), value)

    def get(self, key: str, timeout: float) -> bytes:
        """Return the value that any rank has put under *key*, waiting for it. Raises CollectiveTimeoutError after *timeout* seconds."""
        kind, fields = self._asked(Kind.GET, (packed_text(key),), timeout, lambda: f"get {key!r}")
        if kind is not Kind.VALUE:
            raise CollectiveTimeoutError(
                f"get {key!r}: no rank has put it within {timeout:g} s (rank {self.rank} of {self.size})"
            )
        return fields.rest()

    def drop(self, key: str) -> None:
        """Keep the value under *key* no longer; ``get`` waits for another one."""
        self._way().send(Kind.DROP, packed_text(key))

    def tell(self, topic: str, ranks: Sequence[int], payload: bytes) -> None:
        """Send *payload* to those that listen to *topic* on *ranks*. Returns at once; what is sent to a rank that has gone is dropped."""
        self._check_length(len(payload))
        self._way().send(Kind.TELL, packed_text(topic), packed_ranks(ranks), payload)

    def listen(self, topic: str, handler: Callable[[int, bytes], None]) -> None:
        """Have *handler* called, on the control thread, with sender and payload of what is told on *topic*, first with what came before."""
        self._way().loop.call(self._topics.listen, topic, handler)

    def forget(self, topic: str) -> None:
        """Call *topic*'s handlers, of ``listen`` and ``answer``, no more. A call that is under way goes on."""
        if self._link is not None and not self._is_closed:
            for name in (topic, _QUESTIONS + topic):
                self._link.loop.call(self._topics.forget, name)

    def ask(self, topic: str, ranks: Sequence[int], question: bytes, timeout: float) -> dict[int, bytes]:
        """Return by rank what the handlers of *topic* on *ranks* answer within *timeout* seconds.

        Ranks that are gone, do not answer in time, or whose handler fails are left out. Without rank 0's process nobody answers.
        """
        self._check_length(len(question))
        way, number = self._way(), next(self._numbers)
        inquiry = Inquiry(ranks)
        with self._lock:
            self._requests[number] = inquiry
        try:
            for rank in list(self._endings):
                inquiry.leave_out(rank)
            if self._hub_is_lost:
                return {}
            way.send(Kind.TELL, packed_text(_QUESTIONS + topic), packed_ranks(ranks), _U32.pack(number), question)
            inquiry.wait(time.monotonic() + timeout)
        finally:
            self._forget_request(number)
        return dict(inquiry.answers)

    def answer(self, topic: str, handler: Callable[[int, bytes], bytes]) -> None:
        """Have *handler* called, on the control thread, with asker and question, and its result sent as the answer."""
        way = self._way()

        def answer(sender: int, payload: bytes) -> None:
            number, text = payload[:4], b"0"  # which says that there is no answer
            try:
                text = b"1" + handler(sender, payload[4:])
            finally:
                way.send(Kind.TELL, packed_text(_ANSWERS), packed_ranks([sender]), number + text)

        self.listen(_QUESTIONS + topic, answer)

    def close(self, why: str = "") -> None:
        """Tell the others that this rank leaves, and *why*, and wait a second at most until that is sent.

        Rank 0's process goes on serving the others until they have left or it ends. Calls in progress on other threads raise StateError.
        """
        if self._is_closed or self._process != os.getpid() or self._link is None:
            return
        self._is_closed = True
        for close in self.before_close:
            close()
        self._wake_all(Kind.LEAVE)
        self._link.leave(why)

    def flush(self) -> None:
        """Wait a second at most until what was sent so far, on rank 0 by any rank, has left this process."""
        if self._process == os.getpid() and self._link is not None:
            self._link.flush()

    # Requests.

    def _way(self) -> Link:
        if self._process != os.getpid():
            raise StateError(f"the control connections belong to process {self._process}, which forked this one")
        if self._is_closed or self._link is None:
            raise StateError(f"rank {self.rank} has left the group: its control connections are closed")
        return self._link

    def _asked(
        self, kind: Kind, pieces: Sequence[bytes], timeout: float, what: Callable[[], str]
    ) -> tuple[Kind, Fields]:
        """Send a request and return what the hub answers. Raises PeerLostError when the hub is lost, and CollectiveTimeoutError."""
        way, number = self._way(), next(self._numbers)
        request = Request()
        with self._lock:
            self._requests[number] = request
        try:
            if self._hub_is_lost:
                raise self._loss_of_hub(what())
            way.send(kind, _U32.pack(number), *pieces)
            is_answered = request.wait(time.monotonic() + timeout)
            if not is_answered:
                way.send(Kind.WITHDRAW, _U32.pack(number))
                is_answered = request.wait(time.monotonic() + _FOR_AN_ANSWER)
        finally:
            self._forget_request(number)
        if not is_answered:
            raise CollectiveTimeoutError(
                f"{what()}: no answer from rank 0 within {timeout:g} s (rank {self.rank} of {self.size})"
            )
        kind, body = request.answer
        if kind is Kind.GONE:
            raise self._loss_of_hub(what())
        if kind is Kind.LEAVE:
            raise StateError(f"{what()}: rank {self.rank} left the group meanwhile")
        return kind, Fields(body)

    def _forget_request(self, number: int) -> None:
        with self._lock:
            self._requests.pop(number, None)

    def _failure(self, kind: Kind, fields: Fields, what: str, timeout: float) -> Exception:
        ranks = tuple(fields.ranks())
        me = f"(rank {self.rank} of {self.size})"
        if kind is Kind.LOST:
            how = "; ".join(f"rank {rank}{self.ending_of(rank)}" for rank in ranks[:8])
            lost = PeerLostError(f"{what}: {how}{', and more' if len(ranks) > 8 else ''} {me}")
            lost.ranks = ranks
            return lost
        if kind is Kind.TOO_LARGE:
            return ArgumentError(f"{what}: all payloads together may have {LARGEST} bytes at most {me}")
        verb = "has" if len(ranks) == 1 else "have"
        late = CollectiveTimeoutError(f"{what}: {shown_ranks(ranks)} {verb} not come within {timeout:g} s {me}")
        late.ranks = ranks
        return late

    def _loss_of_hub(self, what: str) -> PeerLostError:
        error = PeerLostError(
            f"{what}: rank 0{self.ending_of(0)}, and with it the control connections: nothing is known of the other ranks "
            f"(rank {self.rank} of {self.size})"
        )
        error.ranks = (0,)
        return error

    def _check_members(self, members: Sequence[int], length: int) -> None:
        if self.rank not in members or len(set(members)) != len(members):
            raise ArgumentError(
                f"exchange: the members must be different ranks with {self.rank}, this one, among them, got {list(members)}"
            )
        if not all(0 <= member < self.size for member in members):
            raise ArgumentError(f"exchange: the members must be in 0..{self.size - 1}, got {list(members)}")
        self._check_length(length, len(members))

    def _check_length(self, length: int, times: int = 1) -> None:
        most = LARGEST - (1 << 20)  # the rest is for names and ranks
        if length * times > most:
            raise ArgumentError(
                f"a control message may have {most} bytes at most, got {length}{f' from each of {times} ranks' if times > 1 else ''}"
            )

    def _wake_all(self, kind: Kind) -> None:
        with self._lock:
            requests = list(self._requests.values())
        for request in requests:
            request.finish(kind, b"")

    # The control thread's.

    def receive(self, kind: Kind, body: bytes) -> None:
        """Take a frame from the hub; after ``close`` nobody wants it. Raises BadFrame."""
        if self._is_closed:
            return
        if kind is Kind.TOLD:
            fields = Fields(body)
            topic, sender = fields.text(), fields.number()
            self._topics.tell(topic, sender, fields.rest())
        elif kind in (Kind.EXCHANGED, Kind.LOST, Kind.MISSING, Kind.TOO_LARGE, Kind.VALUE):
            with self._lock:
                request = self._requests.get(Fields(body).number())
            if request is not None:
                request.finish(kind, body[_U32.size :])
        elif kind is Kind.GONE:
            self._take_endings(body)
        elif kind is Kind.ROSTER:
            self._roster = body
            self.met.finish(kind, body)
        elif kind is Kind.FAILED:
            self.met.finish(kind, body)
        elif kind is Kind.EXPELLED:
            self._end_of_hub(Ending(How.BROKE, time.monotonic(), Fields(body).text()))
        elif kind is not Kind.BEAT:
            raise BadFrame(f"rank 0 sent {kind.name}, which it does not send after the meeting")

    def lose_hub(self, how: How, why: str, silence: float) -> None:
        """Take note that the connection to the hub has ended, or been silent for so many seconds."""
        self._end_of_hub(Ending(how, time.monotonic() - silence, why))

    def _take_endings(self, body: bytes) -> None:
        how, passed = _GONE.unpack_from(body)
        fields = Fields(body[_GONE.size :])
        ranks = fields.ranks()
        ending = Ending(How(how), time.monotonic() - passed / 1000, fields.text())
        self._end(ranks, ending)

    def _end_of_hub(self, ending: Ending) -> None:
        self._hub_is_lost = True
        if 0 not in self._endings:
            self._end([0], ending)
        self._wake_all(Kind.GONE)

    def _end(self, ranks: Sequence[int], ending: Ending) -> None:
        with self._lock:
            new = [rank for rank in ranks if rank not in self._endings]
            self._endings.update(dict.fromkeys(new, ending))
            requests = list(self._requests.values())
        for request in requests:
            for rank in new:
                request.leave_out(rank)
        for handler in list(self._gone_handlers):
            for rank in new:
                report(handler, rank)

    def _take_answer(self, sender: int, payload: bytes) -> None:
        with self._lock:
            request = self._requests.get(Fields(payload).number())
        if isinstance(request, Inquiry):
            request.take(sender, payload[5:] if payload[4:5] == b"1" else None)


_QUESTIONS, _ANSWERS, _PRESENCE = "question ", "answer", "presence"
