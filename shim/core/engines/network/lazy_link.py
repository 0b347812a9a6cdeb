"""A link that is made when it is first needed: groups that move little data do without its connections and threads."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from shim.core.engines.network.link import Link, LinkError, Pending
from shim.core.engines.network.threads import begin_thread
from shim.core.reduce_ops import ReduceOp
from shim.errors import ShimError

if TYPE_CHECKING:
    from shim.core.engines.place import Place


_with_links: weakref.WeakSet[LazyLink] = weakref.WeakSet()


class LazyLink(Link):
    """The link that *make* makes among the ranks of the group at *place*: once one of them needs it, all make theirs, each in a thread.

    Collectives wait for ``made`` first, and take ``link``. A message may be what needs it.
    """

    def __init__(self, place: Place, name: str, make: Callable[[], Link]) -> None:
        assert place.control is not None
        self.rank, self.size, self.name = place.rank, len(place.ranks), name  # type: ignore[misc]  # that of the library
        self._place, self._control, self._make = place, place.control, make
        self._topic = f"link {place.key}"
        self._lock = threading.Lock()  # of what follows
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self.link: Link | None = None
        self._error: LinkError | None = None
        self._has_ended = threading.Event()
        self._waiting: list[_SentLater] = []  # in the order in which they are to be sent
        self._taker: Callable[[int, bytes], None] | None = None
        self._control.listen(self._topic, self._hear)

    def made(self) -> Pending:
        """Have all ranks make it, and return what ends when it is there."""
        if self._begin():
            others = [member for rank, member in enumerate(self._place.ranks) if rank != self.rank]
            self._control.tell(self._topic, others, b"")
        return _Made(self._has_ended, lambda: self._error)

    def _hear(self, member: int, said: bytes) -> None:
        del member, said  # any of them may need it first
        self._begin()

    def _begin(self) -> bool:
        """Begin to make this rank's. Return whether that was not done before."""
        with self._lock:
            if self._thread is not None or self._is_closed:
                return False
            self._thread = begin_thread("shim link", self._connect)
            return True

    def _connect(self) -> None:
        link, problem = None, ""
        try:
            link = self._make()
        except Exception as error:  # whatever it is, the others wait for this rank
            problem = str(error) if isinstance(error, (LinkError, ShimError)) else f"{type(error).__name__}: {error}"
        try:
            problems = [said.decode() for said in self._place.exchange("connect", problem.encode())]
            first = next((rank for rank, said in enumerate(problems) if said), None)
            if first is not None:
                raise LinkError(f"rank {self._place.ranks[first]}: {problems[first]}")
        except Exception as error:
            self._error = LinkError(str(error).partition("\n")[0])
        with self._lock:
            is_wanted = link is not None and not self._is_closed and self._error is None
            if link is not None and is_wanted:
                self.link = link
                _with_links.add(self)
                if self._taker is not None:
                    link.take_headers(self._taker)
                for later in self._waiting:
                    later.begin(link)
            self._waiting.clear()
        if link is not None and not is_wanted:
            link.close(False)
        self._has_ended.set()

    def send_header(self, header: bytes, peer: int) -> Pending:
        with self._lock:
            if self.link is not None:
                return self.link.send_header(header, peer)
            later = _SentLater(self._has_ended, lambda: self._error, bytes(header), peer)
            self._waiting.append(later)
        self.made()
        return later

    def take_headers(self, taker: Callable[[int, bytes], None]) -> None:
        with self._lock:
            self._taker = taker
            if self.link is not None:  # another rank has needed it before this one was ready
                self.link.take_headers(taker)

    @property
    def is_being_made(self) -> bool:
        """Whether it is needed, and not there yet."""
        return self._thread is not None and not self._has_ended.is_set()

    def _there(self) -> Link:
        assert self.link is not None, "who moves data waits for made() first"
        return self.link

    def send(self, data: memoryview, peer: int, number: int) -> Pending:
        return self._there().send(data, peer, number)

    def receive(self, data: memoryview, peer: int, number: int) -> Pending:
        return self._there().receive(data, peer, number)

    def all_gather(self, outputs: memoryview, mine: memoryview) -> Pending:
        return self._there().all_gather(outputs, mine)

    def broadcast(self, data: memoryview, root: int) -> Pending:
        return self._there().broadcast(data, root)

    def all_to_all(self, outputs: Sequence[memoryview], inputs: Sequence[memoryview]) -> Pending:
        return self._there().all_to_all(outputs, inputs)

    def reduces(self, dtype: str, op: ReduceOp) -> bool:
        return self._there().reduces(dtype, op)

    def all_reduce(self, data: memoryview, dtype: str, op: ReduceOp) -> Pending:
        return self._there().all_reduce(data, dtype, op)

    def close(self, is_clean: bool) -> None:
        with self._lock:
            self._is_closed = True
        self._control.forget(self._topic)
        if self.link is not None:
            self.link.close(is_clean)

    def finish(self, seconds: float) -> None:
        for one in list(_with_links):  # of groups that have closed before, too
            if one._control is self._control and one.link is not None:
                one.link.finish(seconds)


class _Made:
    def __init__(self, has_ended: threading.Event, error: Callable[[], LinkError | None]) -> None:
        self._has_ended, self._error = has_ended, error

    def wait(self, seconds: float) -> bool:
        if not self._has_ended.wait(seconds):
            return False
        if (error := self._error()) is not None:
            raise error
        return True


class _SentLater(_Made):
    """A header that is sent once the link is there."""

    def __init__(
        self, has_ended: threading.Event, error: Callable[[], LinkError | None], header: bytes, peer: int
    ) -> None:
        super().__init__(has_ended, error)
        self._header, self._peer = header, peer
        self._sent: Pending | None = None

    def begin(self, link: Link) -> None:
        self._sent = link.send_header(self._header, self._peer)

    def wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        if not super().wait(seconds):
            return False
        if self._sent is None:
            raise LinkError("the group has been closed")
        return self._sent.wait(max(0.0, deadline - time.monotonic()))
