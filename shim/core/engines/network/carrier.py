"""A carrier exchanges arrivals, places and endings between the ranks of a group that share no memory.

The native group keeps a copy of every rank's words; it compares calls, waits and reports as if the ranks shared memory.
It calls the methods of a carrier when this rank says something (``native/group/carrier.hpp``). Arrivals at operations
go over the link, all ranks' at once; everything else goes through the control connections.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from shim.core.engines.network.link import Drive, LinkError, Pending
from shim.core.engines.network.threads import begin_thread
from shim.core.engines.network.waits import answer_for, circle_told, longest_wait, said_at
from shim.errors import ShimError, StateError

if TYPE_CHECKING:
    from shim._native import CarriedGroup
    from shim.core.control import Control
    from shim.core.engines.network.messages import Messages
    from shim.core.engines.place import Place

Gather = Callable[[bytes], Generator[Pending, None, "list[bytes]"]]
"""Gathers as many bytes of every rank, in the order of group ranks."""

_PATIENCE = 0.05  # seconds for which an arrival is waited for at once; later a thread waits, and the native group
_PATIENCE_IN_FAILURE = 5.0  # seconds until a link's failure counts as its own, and not as the sign of a lost rank
_ANSWER = 1.0  # seconds for the others to say where they are
_PATIENCE_WITH_TIMEOUT = 2.0  # seconds that ranks with one timeout may be apart, with the questions that they ask then
_ON_ITS_WAY = 0.4  # seconds for an arrival of a rank that left before it saw the end of its exchange
_FOR_MESSAGES = 5.0  # seconds for those that a rank has sent before it left
_PAUSE = 0.005  # seconds between two looks for them
_LEFT = 1  # RankState::left of native/group/shared_layout.hpp


class Carrier:
    """The carrier of one group. Threads: the one that carries an operation out, the control connections', and one of its own."""

    def __init__(self, control: Control, place: Place, gather: Gather) -> None:
        self._control = control
        self._process = os.getpid()
        self._ranks = place.ranks
        self._rank = place.rank
        self._topic = f"group {place.key}"
        self._gather = gather
        self._group: CarriedGroup | None = None
        self._forget_gone: Callable[[], None] = _nothing
        self._changed = threading.Condition()
        self._exchanges: list[Drive] = []  # under way, in their order
        self._exchanged = 0  # the last operation of which this rank has all arrivals
        self._are_carried = False  # whether a thread carries on with them, the caller's or one of their own
        self.is_closed = False
        self._whereabouts: dict[int, str] = {}
        self._address = ""  # where this process answers others of its host
        self.left: set[int] = set()  # group ranks that have said so
        self._is_somebody_gone = False  # whose arrival cannot come
        self.messages: Messages | None = None  # of the group on this rank

    def pids_here(self) -> list[int]:
        """Return by group rank the pid of those on this host, whose end the native group sees itself; 0 for the others."""
        peers = self._control.peers
        here = peers[self._control.rank]
        return [
            peers[member].pid if self._is_here(member) and peers[member].pid != here.pid else 0
            for member in self._ranks
        ]

    def _is_here(self, member: int) -> bool:
        peers = self._control.peers
        return peers[member].host_id == peers[self._control.rank].host_id

    def serve(self, group: CarriedGroup) -> None:
        """Begin to tell *group* of the others. Its first operation may follow."""
        self._group = group
        for rank, member in enumerate(self._ranks):
            group.take_process(rank, self._control.peers[member].pid)
        self._address = group.address()
        self._control.answer(self._topic, self._answer)
        answer_for(self._control, self._address)
        self._control.listen(self._topic, self._hear)
        self._forget_gone = self._control.when_gone(self._see_gone)  # which tells of those that have gone, too

    def close(self) -> None:
        """Stop once this rank's last words are on their way; a refused call's go as far as the others have come."""
        with self._changed:
            self._changed.wait_for(lambda: not self._exchanges, 0.5)
            self.is_closed = True
            self._changed.notify_all()
        self._control.forget(self._topic)
        self._forget_gone()
        self._forget_gone = _nothing  # it holds this object
        self._group = None

    def is_exchanging(self) -> bool:
        """Tell whether an exchange is under way."""
        return bool(self._exchanges)

    def wait_for_exchange(self, check: Callable[[], None]) -> None:
        """Return when no exchange of arrivals is under way: then the link is free. *check* may raise meanwhile."""
        with self._changed:
            while not self._changed.wait_for(lambda: not self._exchanges, 0.05):
                check()

    # what the native group calls

    def arrived(self, packet: bytes, sequence: int, is_refused: bool) -> None:
        """Exchange this rank's arrival for the others'."""
        drive = Drive(self._exchange(packet, sequence))
        with self._changed:
            self._exchanges.append(drive)
            if self._are_carried:
                return
            self._are_carried = True
        has_ended = False
        try:
            with suppress(LinkError):  # the thread finds out why
                has_ended = drive.wait(0.0 if is_refused or self._is_somebody_gone else _PATIENCE)
        finally:  # also after Ctrl-C
            if not (has_ended and self._take_off(drive)):
                begin_thread("shim exchange", self._carry_on)

    def told_place(self, sequence: int, place: str) -> None:
        """Tell the others where in the program this rank made its call."""
        self._tell(["place", sequence, place])

    def ended(self, state: int, cause: int, reason: str, has_left: bool, is_late: bool) -> None:
        """Tell the others that this rank left the group or gave it up."""
        sent = self.messages.sent() if self.messages else []
        self._tell(["ended", is_late, self._exchanged, sent, state, cause, reason, has_left])

    def ask_all(self) -> None:
        """Ask the others where they are."""
        members = [member for member in self._others() if not self._control.is_gone(member)]
        said = self._control.ask(self._topic, members, b"", _ANSWER)
        self._whereabouts = {}
        for member, answer in said.items():
            with suppress(ShimError, ValueError):
                self._take_answer(self._ranks.index(member), answer)

    def whereabouts(self, rank: int) -> str:
        """Return where *rank* said it is when all were asked."""
        return self._whereabouts.get(rank, "does not answer")

    def circle(self) -> str:
        """Return which ranks wait for each other in a circle, in whatever groups of the job."""
        with suppress(ShimError):
            silent = {member for rank, member in enumerate(self._ranks) if rank not in self._whereabouts}
            return circle_told(self._control, self._address, silent)
        return ""

    # what others say

    def _hear(self, member: int, said: bytes) -> None:
        group = self._group
        if group is None or member not in self._ranks:
            return
        rank = self._ranks.index(member)
        kind, *words = json.loads(said)
        if kind == "place":
            group.take_place(rank, *words)
        elif kind == "ended":
            is_late, exchanged, sent, *words = words
            if words[0] == _LEFT:
                self.left.add(rank)
            if is_late and self._exchanges:  # this rank's own timeout, which tells who is missing, is to come first
                self._take_ending_later(_PATIENCE_WITH_TIMEOUT, lambda: self.is_closed, rank, words)
            elif (
                words[0] == _LEFT and exchanged > self._exchanged
            ):  # it has had all arrivals, and its own will come here too
                self._take_ending_later(None, lambda: self.is_closed or self._exchanged >= exchanged, rank, words)
            elif words[0] == _LEFT and self._exchanges:
                self._take_ending_later(_ON_ITS_WAY, lambda: not self._exchanges, rank, words)
            elif words[0] == _LEFT and self._is_message_due(rank, sent):
                self._take_ending_later(_FOR_MESSAGES, lambda: not self._is_message_due(rank, sent), rank, words)
            else:
                group.take_ending(rank, *words)

    def _take_ending_later(
        self, seconds: float | None, is_time: Callable[[], bool], rank: int, words: list[Any]
    ) -> None:
        """Tell the native group of an ending when *is_time* says so, after *seconds* at most, if there are any."""

        def take() -> None:
            deadline = float("inf") if seconds is None else time.monotonic() + seconds
            with self._changed:
                while not is_time() and time.monotonic() < deadline:
                    self._changed.wait(_PAUSE)
            group = self._group
            if group is not None:
                group.take_ending(rank, *words)

        begin_thread("shim late ending", take)

    def _is_message_due(self, rank: int, sent: list[int]) -> bool:
        """Tell whether a message is still to come of *rank*, which has *sent* so many to each rank."""
        return (
            not self.is_closed
            and self.messages is not None
            and self.messages.is_due(rank, sent[self._rank] if sent else 0)
        )

    def _see_gone(self, member: int) -> None:
        group = self._group
        if group is None or self.is_closed or member not in self._ranks:
            return
        self._is_somebody_gone = True
        rank = self._ranks.index(member)
        if rank != self._rank and rank not in self.left and not self._is_here(member):
            group.mark_lost(rank, self._control.ending_of(member))

    def _answer(self, member: int, question: bytes) -> bytes:
        """Say what this rank waits for, here and elsewhere, or where its program is, and the call that it has arrived with."""
        del member, question
        group = self._group
        if group is None or self.is_closed:
            return b"{}"
        sequence = group.sequence()
        told: dict[str, Any] = {"note": group.note(), "said": said_at(self._address)}
        if sequence > 0:
            told["arrival"] = group.arrival(sequence).hex()
            told["tables"] = group.tables(sequence).hex()
        return json.dumps(told).encode()

    def _take_answer(self, rank: int, answer: bytes) -> None:
        group = self._group
        told: dict[str, Any] = json.loads(answer)
        if group is None or not told:
            return
        group.take_note(rank, *(told["note"] or ("", "", 0.0)))
        self._whereabouts[rank] = longest_wait(told["said"])
        if "arrival" in told:
            group.take_arrival(rank, bytes.fromhex(told["arrival"]), bytes.fromhex(told["tables"]))

    # exchanges

    def _exchange(self, packet: bytes, sequence: int) -> Generator[Pending, None, None]:
        group = self._group
        assert group is not None
        packets = yield from self._gather(packet)
        if not group.take_arrivals(packets):
            group.take_tables(sequence, (yield from self._gather(group.tables(sequence))))
        self._exchanged = sequence

    def _carry_on(self) -> None:
        """Carry on with the exchanges until there are none, in a thread: the others come late."""
        while not self.is_closed:
            drive = self._exchanges[0]
            try:
                if drive.wait(0.1) and self._take_off(drive):
                    return
            except Exception as error:
                self._fail(error)
                return

    def _take_off(self, drive: Drive) -> bool:
        """Take off the exchange that has ended, and tell whether there is no other; then nobody carries on."""
        with self._changed:
            self._exchanges.remove(drive)
            self._are_carried = bool(self._exchanges)
            self._changed.notify_all()
            return not self._are_carried

    def _fail(self, error: Exception) -> None:
        """Give the group up, unless a rank turns out to be lost, which the native group then tells of itself."""
        group = self._group
        if group is None:
            return
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed or self._has_lost(), _PATIENCE_IN_FAILURE)
        if not self.is_closed and not self._has_lost():
            group.give_up(f"the ranks' calls could not be exchanged: {error}")

    def _has_lost(self) -> bool:
        return any(self._control.is_gone(member) for member in self._others()) or bool(self.left)

    def _others(self) -> list[int]:
        return [member for rank, member in enumerate(self._ranks) if rank != self._rank]

    def _tell(self, words: list[Any]) -> None:
        if not self.is_closed and os.getpid() == self._process:
            with suppress(StateError):  # the connections are closed, and the others know
                self._control.tell(self._topic, self._others(), json.dumps(words).encode())


def _nothing() -> None:
    """Forget no handler."""
