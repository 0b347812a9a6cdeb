"""A link that is made when it is first needed: groups that move little data do without its connections and threads."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from shim.core.engines.network.link import FailedTransfer, Link, LinkError, Pending
from shim.core.engines.network.threads import begin_thread
from shim.core.reduce_ops import ReduceOp
from shim.errors import ShimError

if TYPE_CHECKING:
    from shim.core.engines.place import Place


_with_links: weakref.WeakSet[LazyLink] = weakref.WeakSet()


class LazyLink(Link):
    """The link that *make* makes among the world ranks that it is given, those of the group at *place* that have not gone: once one of them needs it, all make theirs, each in a thread.

    Collectives wait for ``made`` first, and take ``link``. A message may be what needs it.
    """

    def __init__(self, place: Place, name: str, make: Callable[[tuple[int, ...]], Link]) -> None:
        assert place.control is not None
        self.rank, self.size, self.name = place.rank, len(place.ranks), name  # type: ignore[misc]  # that of the library
        self._place, self._control, self._make = place, place.control, make
        self.is_gone: Callable[[int], bool] = _nobody  # of a group rank, which the group knows
        self._topic = f"link {place.key}"
        self._lock = threading.Lock()  # of what follows
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self.link: Link | None = None
        self._error: LinkError | None = None
        self._has_ended = threading.Event()
        self._waiting: list[_SentLater] = []  # in the order in which they are to be sent
        self._taker: Callable[[int, bytes], None] | None = None
        self.tell_failure: Callable[[LinkError], object] = _nothing  # that there will be none
        self._control.listen(self._topic, self._hear)
        self._forget_gone: Callable[[], object] = self._control.when_gone(self._see_gone)

    def made(self) -> Pending:
        """Have all ranks make it, and return what ends when it is there."""
        if self._begin():
            others = [member for rank, member in enumerate(self._place.ranks) if rank != self.rank]
            self._control.tell(self._topic, others, b"")
        return _Made(self._has_ended, lambda: self._error)

    def _hear(self, member: int, said: bytes) -> None:
        del member, said  # any of them may need it first
        self._begin()

    def _see_gone(self, member: int) -> None:
        """Where rank 0 has gone, by whose process the ranks find each other, nobody can connect any more."""
        if member == 0 and self._control.rank != 0 and self.link is None:
            self._give_up(LinkError("rank 0 has gone, by whose process the ranks would have connected"))

    def _give_up(self, error: LinkError) -> None:
        self._error = error
        self._has_ended.set()
        self.tell_failure(error)

    def _begin(self) -> bool:
        """Begin to make this rank's. Return whether that was not done before."""
        with self._lock:
            if self._thread is not None or self._is_closed:
                return False
            self._thread = begin_thread("shim link", self._connect)
            return True

    def _connect(self) -> None:
        link: Link | None = None
        while not self._is_closed:
            there = self._there_now()
            try:
                link = self._connected(there)
                self._error = None
                break
            except Exception as error:
                self._error = LinkError(str(error).partition("\n")[0])
                if self._there_now() == there:
                    break  # it is no rank that went meanwhile, without whom the others connect
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
        if self.link is None and self._error is not None:
            self.tell_failure(self._error)

    def _there_now(self) -> tuple[int, ...]:
        """Return the group ranks that have not gone, as far as is known here."""
        members = self._place.ranks
        return tuple(
            rank
            for rank in range(self.size)
            if rank == self.rank or not (self.is_gone(rank) or self._control.is_gone(members[rank]))
        )

    def _connected(self, there: tuple[int, ...]) -> Link:
        """Return the link between the ranks *there*, once all of them have it. Raises what went wrong on any of them."""
        ranks = tuple(self._place.ranks[rank] for rank in there)
        link, problem = None, ""
        try:
            link = self._make(ranks)
            link = link if len(there) == self.size else LinkAmong(link, there, self)
        except Exception as error:  # whatever it is, the others wait for this rank
            problem = str(error) if isinstance(error, (LinkError, ShimError)) else f"{type(error).__name__}: {error}"
        try:
            step = "connect" if len(there) == self.size else f"connect {there}"
            problems = [said.decode() for said in self._place.exchange(step, problem.encode(), ranks)]
            first = next((rank for rank, said in zip(ranks, problems, strict=True) if said), None)
            if first is not None:
                raise LinkError(f"rank {first}: {problems[ranks.index(first)]}")
        except Exception:
            if link is not None:
                link.close(False)
            raise
        assert link is not None
        return link

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
        self._forget_gone()
        self._forget_gone = _nothing  # what is let go here holds this object, or is held by who holds it
        self.is_gone, self.tell_failure = _nobody, _nothing
        if self.link is not None:
            self.link.close(is_clean)

    def finish(self, seconds: float) -> None:
        for one in list(_with_links):  # of groups that have closed before, too
            if one._control is self._control and one.link is not None:
                one.link.finish(seconds)


class LinkAmong(Link):
    """The link *under* of those group ranks that are *there*, by the ranks of the group of *whole*: for messages, as nothing else is left to do."""

    def __init__(self, under: Link, there: Sequence[int], whole: Link) -> None:
        self._under, self._there_ranks = under, tuple(there)
        self.rank, self.size, self.name = whole.rank, whole.size, under.name  # type: ignore[misc]  # that of the library
        self.needs_progress = under.needs_progress  # type: ignore[misc]

    def _at(self, peer: int) -> int:
        if peer not in self._there_ranks:
            raise LinkError(f"rank {peer} of the group has gone")
        return self._there_ranks.index(peer)

    def send(self, data: memoryview, peer: int, number: int) -> Pending:
        return self._under.send(data, self._at(peer), number)

    def receive(self, data: memoryview, peer: int, number: int) -> Pending:
        return self._under.receive(data, self._at(peer), number)

    def send_header(self, header: bytes, peer: int) -> Pending:
        return self._under.send_header(header, self._at(peer))

    def take_headers(self, taker: Callable[[int, bytes], None]) -> None:
        self._under.take_headers(lambda peer, header: taker(self._there_ranks[peer], header))

    def progress(self) -> None:
        self._under.progress()

    def close(self, is_clean: bool) -> None:
        self._under.close(is_clean)

    def finish(self, seconds: float) -> None:
        self._under.finish(seconds)

    def all_gather(self, outputs: memoryview, mine: memoryview) -> Pending:
        return _no_collective()

    def broadcast(self, data: memoryview, root: int) -> Pending:
        return _no_collective()

    def all_to_all(self, outputs: Sequence[memoryview], inputs: Sequence[memoryview]) -> Pending:
        return _no_collective()

    def reduces(self, dtype: str, op: ReduceOp) -> bool:
        return False

    def all_reduce(self, data: memoryview, dtype: str, op: ReduceOp) -> Pending:
        return _no_collective()


def _nobody(rank: int) -> bool:
    return False


def _nothing(error: LinkError | None = None) -> None:
    """Tell nobody."""


def _no_collective() -> Pending:
    return FailedTransfer(LinkError("a rank of the group has gone"))


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
