"""A carrier takes what a rank says to the ranks of its group on other hosts, but for its arrivals, and tells it of them.

The native group exchanges arrivals itself (``native/crossing/``). It calls the methods of a carrier when this rank says where it made a call, or that
it has ended, and when it asks where the others are (``native/group/carrier.hpp``): that goes through the control connections.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from shim.core.engines.network.threads import begin_thread
from shim.core.engines.network.waits import answer_for, circle_told, longest_wait, said_at
from shim.errors import ShimError, StateError

if TYPE_CHECKING:
    from shim._native import CarriedGroup
    from shim.core.control import Control
    from shim.core.engines.network.messages import Messages
    from shim.core.engines.place import Place

_ANSWER = 1.0  # seconds for the others to say where they are
_PATIENCE_WITH_TIMEOUT = 2.0  # seconds that ranks with one timeout may be apart, with the questions that they ask then
_ON_ITS_WAY = 0.4  # seconds for an arrival of a rank that left before it saw the end of its exchange
_FOR_MESSAGES = 5.0  # seconds for those that a rank has sent before it left
_PAUSE = 0.005  # seconds between two looks for them
_LEFT = 1  # RankState::left of native/group/shared_layout.hpp


class Carrier:
    """The carrier of one group. Threads: those of the program, the control connections', and one for each ending that is told later."""

    def __init__(self, control: Control, place: Place, here: Sequence[int]) -> None:
        self._control = control
        self._process = os.getpid()
        self._ranks = place.ranks
        self._rank = place.rank
        self._here = frozenset(here)
        self._topic = f"group {place.key}"
        self._group: CarriedGroup | None = None
        self._forget_gone: Callable[[], None] = _nothing
        self._changed = threading.Condition()
        self.is_closed = False
        self._whereabouts: dict[int, str] = {}
        self._address = ""  # where this process answers others of its host
        self.left: set[int] = set()  # group ranks of other hosts that have said so
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
        """Tell the group, and the others, nothing more."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()
        self._control.forget(self._topic)
        self._forget_gone()
        self._forget_gone = _nothing  # it holds this object
        self._group = None

    # what the native group calls

    def told_place(self, sequence: int, place: str) -> None:
        """Tell the others where in the program this rank made its call."""
        self._tell(["place", sequence, place])

    def ended(self, state: int, cause: int, reason: str, has_left: bool, is_late: bool) -> None:
        """Tell the others that this rank left the group or gave it up."""
        sent = self.messages.sent() if self.messages else []
        exchanged = 0 if self._group is None else self._group.exchanged()
        self._tell(["ended", is_late, exchanged, sent, state, cause, reason, has_left])

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
        if rank in self._here:
            return  # the group sees what it says
        kind, *words = json.loads(said)
        if kind == "place":
            group.take_place(rank, *words)
        elif kind == "ended":
            is_late, exchanged, sent, *words = words
            if words[0] == _LEFT:
                self.left.add(rank)
            if (
                is_late and self._is_exchanging()
            ):  # this rank's own timeout, which tells who is missing, is to come first
                self._take_ending_later(_PATIENCE_WITH_TIMEOUT, lambda: self.is_closed, rank, words)
            elif exchanged > group.exchanged():  # it has had all, which will come here too
                seconds = None if words[0] == _LEFT else _ON_ITS_WAY
                self._take_ending_later(seconds, lambda: self._has_exchanged(exchanged), rank, words)
            elif words[0] == _LEFT and self._is_exchanging():
                self._take_ending_later(_ON_ITS_WAY, lambda: not self._is_exchanging(), rank, words)
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

    def _is_exchanging(self) -> bool:
        """Tell whether this rank has arrived at an operation, and not heard of all others there."""
        group = self._group
        return group is not None and group.exchanged() < group.sequence()

    def _has_exchanged(self, sequence: int) -> bool:
        group = self._group
        return group is None or self.is_closed or group.exchanged() >= sequence

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
        rank = self._ranks.index(member)
        if rank != self._rank and rank not in self.left and not self._is_here(member):
            group.mark_lost(rank, self._control.ending_of(member))

    def _answer(self, member: int, question: bytes) -> bytes:
        """Say what this rank waits for, here and elsewhere, or where its program is, and the call that it has arrived with."""
        del member, question
        group = self._group
        if group is None or self.is_closed:
            return b"{}"
        return json.dumps({"note": group.note(), "said": said_at(self._address), "arrived": group.sequence()}).encode()

    def _take_answer(self, rank: int, answer: bytes) -> None:
        group = self._group
        told: dict[str, Any] = json.loads(answer)
        if group is None or not told:
            return
        group.take_note(rank, *(told["note"] or ("", "", 0.0)))
        self._whereabouts[rank] = longest_wait(told["said"])
        group.take_arrival(rank, told["arrived"])

    def _others(self) -> list[int]:
        return [member for rank, member in enumerate(self._ranks) if rank != self._rank]

    def _tell(self, words: list[Any]) -> None:
        if not self.is_closed and os.getpid() == self._process:
            with suppress(StateError):  # the connections are closed, and the others know
                self._control.tell(self._topic, self._others(), json.dumps(words).encode())


def _nothing() -> None:
    """Forget no handler."""
