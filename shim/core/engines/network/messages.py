"""Messages between two ranks over a link: a header finds its receive by tag, and large data follows when asked for.

A header has a fixed size and is taken without being asked for. A small message travels in it and ends at once for its
sender. For a large one the receiver answers the header, once a receive of the same tag is there, with *go* or *refuse*.
Receives of one tag take a sender's messages in the order in which they were sent.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from struct import Struct

from shim.core.engines.network.link import HEADER_BYTES, Link, LinkError, Pending
from shim.core.engines.network.threads import begin_thread
from shim.core.tensors.elements import DEVICE_MESSAGE
from shim.errors import EngineError, MismatchError, ShimError

_HEADER = Struct("<BQqQ16s")  # kind, number, tag, bytes, dtype
_MOST_INLINE = HEADER_BYTES - _HEADER.size
_SMALL, _OFFER, _GO, _REFUSE = range(4)
_NUMBERS = 1 << 20  # of transfers of a link
_PAUSE = 0.02  # seconds between two looks, at most, and
_PAUSE_OF_POLLS = 0.0002  # where headers come only to those who look
_UNTIL_WORD_OF_LOSS = 5.0  # seconds until a link's failure is its own
_DROPPED = "\nThe message was dropped; the group can still be used."


@dataclass
class _Header:
    kind: int
    number: int  # of the sender's messages to this receiver
    tag: int
    size: int  # bytes of the message
    dtype: str
    data: bytes | memoryview  # of a small message, or of a large one to oneself

    def packed(self) -> bytes:
        words = _HEADER.pack(self.kind, self.number, self.tag, self.size, self.dtype.encode())
        return (words + (bytes(self.data) if self.kind == _SMALL else b"")).ljust(HEADER_BYTES, b"\0")


def _parsed(header: bytes) -> _Header:
    kind, number, tag, size, dtype = _HEADER.unpack_from(header)
    data = header[_HEADER.size : _HEADER.size + size] if kind == _SMALL else b""
    return _Header(kind, number, tag, size, dtype.rstrip(b"\0").decode(), data)


class Mover:
    """One send or receive; native/bindings/calls/moved_task.hpp waits for it, and calls its methods."""

    def __init__(self, messages: Messages, is_send: bool, peer: int | None, tag: int) -> None:
        self._messages = messages
        self.is_send = is_send
        self.peer = peer
        self.tag = tag
        self.source = -1  # the group rank that an ended receive came from
        self.memory = memoryview(b"")
        self.dtype = ""
        self.number = -1
        self._error: ShimError | None = None
        self._ended: Callable[[], None] = lambda: None
        self._has_ended = False

    def start(self, memory: memoryview, dtype: str, ended: Callable[[], None]) -> None:
        """Begin to move *memory*; *ended* is to be called when that has ended, well or badly."""
        self.memory, self.dtype, self._ended = memory, dtype, ended
        if self.is_send:
            self._messages.send(self)
        else:
            self._messages.receive(self)

    def end(self, error: ShimError | None = None) -> None:
        """Say that it has ended."""
        if self._has_ended:
            return
        self._has_ended = True
        self._error = error
        self.memory = memoryview(b"")
        ended, self._ended = self._ended, lambda: None
        ended()

    def check(self) -> None:
        """Raise what ended it, if that was an error."""
        if self._error is not None:
            raise self._error

    def withdraw(self) -> None:
        """Forget it: nobody waits any more. What is under way keeps the memory until the group ends."""
        self._has_ended = True
        self._ended = lambda: None
        self._messages.withdraw(self)


def _hand_on(messages: weakref.ref[Messages], peer: int, header: bytes) -> None:
    """Give *header* to *messages*, if they are still there. A link's thread may outlive a group that was given up, and is not to keep it."""
    alive = messages()
    if alive is not None:
        alive._take(peer, header)


class Messages:
    """The messages of one group on this rank. Any thread may call it; the link's threads bring headers."""

    def __init__(self, link: Link, label: Callable[[int], str], itemsize: Callable[[str], int]) -> None:
        self._link = link
        self._label = label  # "rank 3", as errors name a group rank
        self._itemsize = itemsize
        self._lock = threading.RLock()
        self._to_end: deque[Callable[[], None]] = deque()  # called without the lock: an end may run any code
        self._sent = [0] * link.size  # messages to each rank so far, and
        self._come = [0] * link.size  # from each
        self._offered: dict[tuple[int, int], Mover] = {}  # sends that wait for an answer, by receiver and number
        self._posted: list[Mover] = []  # receives without a message, in their order
        self._arrived: list[tuple[int, _Header]] = []  # messages without a receive, with their senders, in their order
        self._under_way: list[tuple[Pending, Mover | None]] = []  # transfers
        self._polling: threading.Thread | None = None
        self._is_closed = False
        self._lost: LinkError | None = None  # why no header comes any more
        link.take_headers(partial(_hand_on, weakref.ref(self)))

    def send(self, mover: Mover) -> None:
        """Begin a send."""
        peer = mover.peer
        assert peer is not None
        with self._locked():
            if self._lost is not None and peer != self._link.rank:
                self._end(mover, EngineError(f"the message could not be carried: {self._lost}"))
                return
            self._sent[peer] += 1
            mover.number = self._sent[peer]
            size = len(mover.memory)
            is_small = size <= _MOST_INLINE
            kind = _SMALL if is_small else _OFFER
            data = bytes(mover.memory) if is_small else mover.memory
            header = _Header(kind, mover.number, mover.tag, size, mover.dtype, data)
            if not is_small:
                self._offered[peer, mover.number] = mover
            self._say(peer, header)
            if is_small:
                self._end(mover)

    def receive(self, mover: Mover) -> None:
        """Begin a receive."""
        with self._locked():
            for place, (peer, header) in enumerate(self._arrived):
                if _takes(mover, peer, header):
                    del self._arrived[place]
                    self._give(mover, peer, header)
                    return
            if self._lost is not None:
                self._fail_later(mover, self._lost)
                return
            self._posted.append(mover)
            self._poll()

    def withdraw(self, mover: Mover) -> None:
        """Forget a send or receive that has not ended."""
        with self._lock:
            if mover in self._posted:
                self._posted.remove(mover)
            if mover.peer is not None:
                self._offered.pop((mover.peer, mover.number), None)

    def close(self) -> None:
        """Forget all, and let nothing look at the link any more."""
        with self._lock:
            self._is_closed = True
            self._posted.clear()
            self._arrived.clear()
            self._offered.clear()
            polling = self._polling
        if polling not in (None, threading.current_thread()):
            polling.join()

    def sent(self) -> list[int]:
        """Return how many messages this rank has sent to each."""
        return list(self._sent)

    def is_due(self, peer: int, sent: int) -> bool:
        """Tell whether not all *sent* messages of *peer* have come. Whether a receive is there for them does not matter: the next call may be one."""
        with self._lock:
            return self._come[peer] < sent

    def has_unsent(self) -> bool:
        """Tell whether messages that have ended for this rank are still on their way."""
        with self._locked():
            self._look()
            return any(mover is None for _, mover in self._under_way)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock:
            yield
        while self._to_end:
            self._to_end.popleft()()

    def _end(self, mover: Mover, error: ShimError | None = None) -> None:
        self._to_end.append(lambda: mover.end(error))

    def _take(self, peer: int, packed: bytes) -> None:
        """Take a header that has come."""
        header = _parsed(packed)
        with self._locked():
            if self._is_closed:
                return
            if header.kind in (_GO, _REFUSE):
                self._take_answer(peer, header)
                return
            self._come[peer] += 1
            self._find_receive(peer, header)

    def _find_receive(self, peer: int, header: _Header) -> None:
        for mover in self._posted:
            if _takes(mover, peer, header):
                self._posted.remove(mover)
                self._give(mover, peer, header)
                return
        self._arrived.append((peer, header))

    def _take_answer(self, peer: int, header: _Header) -> None:
        mover = self._offered.pop((peer, header.number), None)
        if mover is None:
            return
        if header.kind == _REFUSE:
            told = f"{self._label(peer)} did not expect {self._elements(mover.dtype, len(mover.memory))} with tag {mover.tag}"
            self._end(mover, MismatchError(told))
        else:
            self._carry(self._link.send(mover.memory, peer, header.number % _NUMBERS), mover)

    def _give(self, mover: Mover, peer: int, header: _Header) -> None:
        """Give a receive its message."""
        mover.source = peer
        fits = header.dtype == mover.dtype and header.size == len(mover.memory)
        if not fits:
            sent = self._elements(header.dtype, header.size)
            wanted = self._elements(mover.dtype, len(mover.memory))
            self._end(
                mover, MismatchError(f"{self._label(peer)} sent {sent} where this rank receives {wanted}{_DROPPED}")
            )
        if header.kind == _SMALL:
            if fits:
                mover.memory[:] = header.data
                self._end(mover)
        elif peer == self._link.rank:
            self._give_own(mover, header, fits)
        else:
            number = header.number % _NUMBERS
            if fits:
                self._carry(self._link.receive(mover.memory, peer, number), mover)
            self._say(
                peer, _Header(_GO if fits else _REFUSE, header.number, header.tag, header.size, header.dtype, b"")
            )

    def _give_own(self, mover: Mover, header: _Header, fits: bool) -> None:
        if fits:
            mover.memory[:] = header.data
            self._end(mover)
            sender = self._offered.pop((self._link.rank, header.number), None)
            if sender is not None:
                self._end(sender)
        else:
            self._take_answer(self._link.rank, _Header(_REFUSE, header.number, header.tag, 0, header.dtype, b""))

    def _say(self, peer: int, header: _Header) -> None:
        if peer == self._link.rank:
            self._find_receive(peer, header)
            return
        self._carry(self._link.send_header(header.packed(), peer), None)

    def _carry(self, pending: Pending, mover: Mover | None) -> None:
        """See a transfer end, at which *mover* ends."""
        self._under_way.append((pending, mover))
        self._look()
        self._poll()

    def _look(self) -> None:
        """End what has ended."""
        left: list[tuple[Pending, Mover | None]] = []
        for pending, mover in self._under_way:
            try:
                if not pending.wait(0.0):
                    left.append((pending, mover))
                elif mover is not None:
                    self._end(mover)
            except LinkError as error:
                if mover is not None:
                    self._fail_later(mover, error)
        self._under_way = left

    def _fail_later(self, mover: Mover, error: LinkError) -> None:
        """End a message whose transfer failed, unless its rank turns out to be lost first, which its wait tells."""
        failure = EngineError(f"the message could not be carried: {error}")
        timer = threading.Timer(_UNTIL_WORD_OF_LOSS, mover.end, (failure,))
        timer.daemon = True
        timer.start()

    def _poll(self) -> None:
        """Have a thread look, as long as there is something to look for."""
        if self._polling is None and (self._under_way or self._awaits_headers()):
            self._polling = begin_thread("shim messages", self._watch)

    def _awaits_headers(self) -> bool:
        """Tell whether headers are awaited that come only while somebody asks for them."""
        return self._link.needs_progress and bool(self._posted or self._offered)

    def _watch(self) -> None:
        while True:
            with self._locked():
                first = self._under_way[0][0] if self._under_way else None
                if self._is_closed or (first is None and not self._awaits_headers()):
                    self._polling = None
                    return
            try:
                self._link.progress()
            except LinkError as error:
                self.lose_headers(error)
            with suppress(LinkError):  # told below
                if first is not None:
                    first.wait(_PAUSE_OF_POLLS if self._link.needs_progress else _PAUSE)
                else:
                    time.sleep(_PAUSE_OF_POLLS)
            with self._locked():
                self._look()

    def lose_headers(self, error: LinkError) -> None:
        """End the messages that wait for a header, as none comes any more, and those that come later."""
        with self._locked():
            self._lost = error
            for mover in (*self._posted, *self._offered.values()):
                self._fail_later(mover, error)
            self._posted.clear()
            self._offered.clear()

    def _elements(self, dtype: str, size: int) -> str:
        if dtype == DEVICE_MESSAGE:
            return "a tensor on a device"
        count = size // max(1, self._itemsize(dtype))
        return f"{count} element{'s' * (count != 1)} of {dtype}"


def _takes(mover: Mover, peer: int, header: _Header) -> bool:
    return mover.peer in (None, peer) and mover.tag == header.tag
