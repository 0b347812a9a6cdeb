"""The barrier that tells which ranks have not come: rank 0 asks all others, hears from them, and answers those it heard.

It is made of messages, beside the order of the collectives, so that a rank that does not come leaves the group usable.
Each other rank is asked once, and says that it is there when it comes, be that in a later barrier: what it says then is
for the earlier one, so it is asked again. Who has not been asked since it called takes no answer for its own.
A rank whose call is refused raises alone: it is one that has not come.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection
from datetime import timedelta
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from shim.core import calls, work
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.errors import CollectiveTimeoutError, MismatchError, PeerLostError, ShimError
from shim.frontends.torch._calls.options import seconds_of

_TAG = -(2**31)  # of its messages, out of the way of the user's
_BYTES = 512  # of a message
_PAUSE = 0.5  # seconds between looks at whether those who are waited for live
_SHORTEST = 1e-4  # seconds
_ASK, _HERE, _ANSWER, _NOTHING = "ask", "here", "answer", "nothing"  # the kinds of messages


def monitored(caller: Caller, members: ProcessGroup, timeout: Any, wait_all_ranks: bool) -> None:
    """Wait for every rank, at most *timeout*; rank 0 stops at the first that fails unless *wait_all_ranks*."""
    if not members.is_alive:
        calls.barrier(caller, members)  # which warns outside the group and raises after its end
        return
    if isinstance(timeout, float):
        warnings.warn(
            f"{caller.function}: timeout should be a datetime.timedelta; {timeout} is taken as seconds",
            UserWarning,
            stacklevel=3,
        )
        timeout = timedelta(seconds=timeout)
    if isinstance(timeout, timedelta) and timeout <= timedelta(0):
        seconds = 0.0  # who is not here yet has not come in time
    else:
        seconds = members.timeout if timeout is None else seconds_of(caller, timeout)
    peers = _Peers(caller, members)
    end = time.monotonic() + seconds
    if members.rank == 0:
        _hear_all(peers, end, wait_all_ranks)
    else:
        _report(peers, end)


class _Message(NamedTuple):
    """A *kind* of message; *text* says why the barrier failed and is empty when it did not."""

    kind: str
    text: str = ""

    def packed(self) -> bytearray:
        """Return its bytes, of which there are always as many; a *text* that is too long is cut."""
        full = f"{self.kind} {self.text}".encode()[:_BYTES]
        return bytearray(full.decode(errors="ignore").encode().ljust(_BYTES, b"\0"))

    @classmethod
    def unpacked(cls, message: bytearray) -> _Message:
        return cls(*message.rstrip(b"\0").decode().split(" ", 1))


_asked: WeakKeyDictionary[ProcessGroup, set[int]] = WeakKeyDictionary()  # whom rank 0 has asked, and not heard since


class _Peers:
    """The other ranks of a group, and the messages to and from them."""

    def __init__(self, caller: Caller, members: ProcessGroup) -> None:
        self.caller = caller
        self.members = members
        self.asked = _asked.setdefault(members, set())

    def tell(self, rank: int, message: _Message) -> work.Work:
        """Begin to send *message*."""
        sent = calls.send(self.caller, self.members, message.packed(), rank, _TAG)
        sent.start()
        return sent

    def hear(self, end: float, awaited: Collection[int]) -> tuple[int, _Message] | None:
        """Return who sent the next message, and it, or None when there is none until *end*.

        A receive that stayed posted would end the group at its timeout, so this rank takes it away by a message to itself.
        Raises PeerLostError when one of the ranks *awaited* is gone.
        """
        while True:
            packed = bytearray(_BYTES)
            receive = calls.receive(self.caller, self.members, packed, None, _TAG)
            receive.start()
            try:
                receive.wait(max(min(end - time.monotonic(), _PAUSE, self.members.timeout / 2), _SHORTEST))
            except CollectiveTimeoutError:
                self.tell(self.members.rank, _Message(_NOTHING))
                receive.wait()
            message = _Message.unpacked(packed)
            if message.kind != _NOTHING:
                return receive.source_rank(), message
            if time.monotonic() >= end:
                return None
            gone = tuple(rank for rank in sorted(awaited) if self.members.engine.is_gone(rank))
            if gone:
                raise self.caller.explain(_failure(PeerLostError, _missing(gone), gone), self.members)


def _hear_all(peers: _Peers, end: float, wait_all_ranks: bool) -> None:
    """Be rank 0: hear from every other rank, answer those that have come, and raise when one has failed."""
    others = range(1, peers.members.size)
    asking = set(others) - peers.asked  # whose next word is about this barrier
    for rank in asking:
        peers.tell(rank, _Message(_ASK))
    peers.asked.update(asking)
    failure, told = _hear_from(peers, set(others), asking, end, wait_all_ranks)
    answers = [peers.tell(rank, _Message(_ANSWER, "" if failure is None else str(failure))) for rank in sorted(told)]
    if failure is not None:
        raise peers.caller.explain(failure, peers.members)
    for answer in answers:
        answer.wait(max(end - time.monotonic(), _SHORTEST))


def _hear_from(
    peers: _Peers, absent: set[int], asking: set[int], end: float, wait_all_ranks: bool
) -> tuple[ShimError | None, set[int]]:
    """Hear from all of *absent*; return why the barrier fails, None if it does not, and who is to have an answer."""
    present: set[int] = set()
    while absent:
        try:
            heard = peers.hear(end, absent)
        except PeerLostError as error:
            gone = error.ranks or tuple(sorted(absent))
            return _failure(PeerLostError, _missing(gone), gone), present.difference(gone)
        if heard is None:
            named = tuple(sorted(absent)) if wait_all_ranks else (min(absent),)
            return _failure(CollectiveTimeoutError, _missing(named), named), present
        rank = heard[0]
        peers.asked.discard(rank)
        if rank in asking:
            absent.discard(rank)
            present.add(rank)
        else:  # it was asked for an earlier barrier, and may have given up since it said that it is there
            peers.tell(rank, _Message(_ASK))
            peers.asked.add(rank)
            asking.add(rank)
    return None, present


def _report(peers: _Peers, end: float) -> None:
    """Be another rank: tell rank 0, whenever it asks, and wait for its answer."""
    is_asked = False
    while True:
        heard = peers.hear(end, (0,))
        if heard is None:
            error = _failure(CollectiveTimeoutError, "rank 0 has not come, or waits for another rank", (0,))
            raise peers.caller.explain(error, peers.members)
        message = heard[1]
        if message.kind == _ASK:
            is_asked = True
            peers.tell(0, _Message(_HERE))
        elif is_asked:  # else it is the answer to a call that this rank gave up
            break
    if message.text:
        raise peers.caller.explain(MismatchError(message.text), peers.members)


def _missing(ranks: tuple[int, ...]) -> str:
    named = ", ".join(map(str, ranks))
    return f"group rank {named} has not come" if len(ranks) == 1 else f"group ranks {named} have not come"


def _failure(
    kind: type[PeerLostError] | type[CollectiveTimeoutError], what: str, ranks: tuple[int, ...]
) -> PeerLostError | CollectiveTimeoutError:
    error = kind(what)
    error.ranks = ranks
    return error
