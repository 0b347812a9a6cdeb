"""What the links of one group's tensors on devices are, whatever library makes them: watched, and ended all together."""

from __future__ import annotations

import math
import os
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from shim.core.engines.network.threads import begin_thread
from shim.errors import CollectiveTimeoutError, EngineError, PeerLostError, ShimError, TensorError

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.base import Engine

_Link = TypeVar("_Link")

_BETWEEN_LOOKS, _BETWEEN_CHECKS = 0.1, 0.02  # seconds
_AFTER_LEAVING = (
    30.0  # seconds that closing waits for operations with a rank that has left, whose part may be under way
)


class End(Protocol):
    """An event, as the library of the device calls it: a point in a stream. ``is_cut_off`` says that what it is behind was ended before."""

    is_cut_off: bool

    def is_reached(self) -> bool: ...

    def make_wait(self, stream: Any) -> None:
        """Have what comes next in *stream* begin after it."""


class _UnderWay(NamedTuple):
    """An operation that has not reached its *end* on the device, as far as is known, *since* when, and the *tensors* of it."""

    end: End
    tensors: Any
    since: float


class WatchedLinks(ABC):
    """The links of rank *rank* in the group that *under* serves in host memory, all for one device of *kind*.

    A thread ends them when a rank is lost, for which their operations would wait for ever, when the library reports an error, and when a
    started operation has not ended after ``timeout`` seconds. Then the group is given up, so that the other ranks hear of it.
    """

    timeout = math.inf

    def __init__(self, under: Engine, rank: int, size: int, kind: str) -> None:
        self.under, self.rank, self.size, self.kind = under, rank, size, kind
        self.process = os.getpid()
        self.device: int | None = None  # the number of this rank's
        self._failure: ShimError | None = None  # which has ended the links
        self._keeping = threading.Lock()  # of what follows
        # By the stream that uses the tensors.
        self._under_way: defaultdict[Any, deque[_UnderWay]] = defaultdict(deque)
        self._is_closed = threading.Event()
        self._watch = begin_thread(f"shim {kind} watch", self._look_after)

    @abstractmethod
    def on_device(self) -> AbstractContextManager[object]:
        """Have the thread's calls be about the group's device."""

    @abstractmethod
    def current_stream(self, request: Request) -> Any:
        """Return the stream on which the program works here, with the tensors of *request*."""

    @abstractmethod
    def event_behind(self, stream: Any) -> Any:
        """Return an event behind what is on *stream* now."""

    def event_before(self, request: Request) -> Any:
        """Return an event behind what is now on the stream that is current for *request*: what comes there later may wait for the operation."""
        with self.on_device():
            return self.event_behind(self.current_stream(request))

    def order_after(self, end: End, request: Request) -> None:
        """Have what comes next on the stream that is current here come after *end*. Raises what has ended the operation before."""
        if end.is_cut_off:
            self.check_intact()
        with self.on_device():
            end.make_wait(self.current_stream(request))

    @abstractmethod
    def end(self, error: ShimError) -> None:
        """End all operations, and refuse more with *error*."""

    @abstractmethod
    def library_failure(self) -> str:
        """Return what has failed in the background, if anything."""

    @abstractmethod
    def come_to_an_end(self, why: str) -> None:
        """Wait for what is on the device, or end it because of *why*, if any; refuse more, and let the links go."""

    def settle_device(self, number: int) -> None:
        """Keep to the device of the first call, whose links all ranks would have to make anew for another."""
        if self.device is None:
            self.device = number
        if self.device != number:
            raise TensorError(
                f"the tensors must be on {self.kind}:{self.device}, which this rank uses in the group, got tensors on {self.kind}:{number}\n"
                "Make another group for another device."
            )

    @property
    def number(self) -> int:
        """The number of the group's device."""
        assert self.device is not None
        return self.device

    def is_reached(self, end: End) -> bool:
        """Tell whether what *end* is behind has ended."""
        with self.on_device():
            return end.is_reached()

    def check_intact(self) -> None:
        """Raise what has ended the links, after which the outputs of operations are undefined."""
        if self._failure is not None:
            raise copy(self._failure)  # the frames of who gets it hold what the links are held by

    def what_ended(self, end: End | None) -> ShimError | None:
        """Return what has ended the links before the operation that *end* is behind, if it has one."""
        return copy(self._failure) if end is not None and end.is_cut_off and self._failure is not None else None

    def connected(self, make: Callable[[], _Link], drop: Callable[[_Link], object]) -> _Link:
        """Return the link that *make* returns, for which it may wait for other ranks. Raises what ends the links meanwhile.

        One that comes too late is *dropped*.
        """
        ended: list[_Link | BaseException] = []

        def connect() -> None:
            try:
                made = make()
            except BaseException as error:
                ended.append(error)
                return
            if self._failure is not None:
                drop(made)
                ended.append(self._failure)
            else:
                ended.append(made)

        thread = begin_thread(f"shim {self.kind} connecting", connect)
        while thread.is_alive():
            self.check_intact()
            thread.join(_BETWEEN_CHECKS)
        if isinstance(ended[0], BaseException):
            raise ended[0]
        return ended[0]

    def keep(self, stream: Any, end: End, kept: Any) -> None:
        """Keep *kept*, tensors of an operation on *stream*, until its *end* is reached; those that have reached theirs are let go here."""
        with self._keeping:
            self._under_way[stream].append(_UnderWay(end, kept, time.monotonic()))
        self._let_go()

    def _let_go(self) -> bool:
        """Let the tensors go that no stream uses any more, and tell whether there are none left."""
        ended = []  # their memory is given back when the lock is not held
        with self._keeping:
            for kept in self._under_way.values():
                while kept and kept[0].end.is_reached():
                    ended.append(kept.popleft())
            return not any(self._under_way.values())

    def _cut_off(self, error: ShimError) -> None:
        """Refuse more with *error*, and mark the operations that are not to end by themselves any more."""
        self._failure = self._failure or error
        with self.on_device(), self._keeping:
            for one in (one for kept in self._under_way.values() for one in kept):
                if not _is_surely_reached(
                    one.end
                ):  # what an earlier look has cut off stays so: an abort has its end be reached
                    one.end.is_cut_off = True

    def _look_after(self) -> None:
        while not self._is_closed.wait(_BETWEEN_LOOKS):
            if self.device is None:
                continue
            try:
                with self.on_device():
                    self._let_go()
                self.look()
            except EngineError as error:  # of a device that is beyond help
                with suppress(EngineError):
                    self.give_up(error)

    def look(self) -> None:
        """End the links if a rank is lost, the library reports an error, or an operation takes too long."""
        if (loss := self._loss()) is not None:
            self.end(loss)
        if failure := self.library_failure():
            self.give_up(EngineError(failure))
        if self.is_open() and self._is_late():
            late = CollectiveTimeoutError(
                f"an operation on {self.kind} has not ended within {self.timeout:g} s\n"
                "Those of several groups may wait for each other where the ranks launch them in another order."
            )
            late.ranks = ()
            self.give_up(late)

    def _is_late(self) -> bool:
        with self._keeping:
            since = min((kept[0].since for kept in self._under_way.values() if kept), default=math.inf)
        return time.monotonic() - since > self.timeout

    def give_up(self, error: ShimError) -> None:
        """End the links because of *error*, and the group: the other ranks know nothing of it, and their operations wait for this rank's."""
        self._failure = self._failure or error
        self.under.give_up(f"{error}".partition("\n")[0])
        self.end(error)

    def _loss(self) -> ShimError | None:
        others = [rank for rank in range(self.size) if rank != self.rank]
        lost = [rank for rank in others if self.under.is_gone(rank) and not self.under.has_left(rank)]
        if lost:
            endings = "; ".join(map(self.under.ending_of, lost))
            error = PeerLostError(f"operations on devices were ended: {endings}")
            error.ranks = tuple(lost)
            return error
        if not self.under.is_usable():
            return EngineError("operations on devices were ended: a call of the group has failed")
        return None

    def close(self, why: str) -> None:
        """Wait for what is on the device, or end it because of *why*, if any; nothing is launched from now on."""
        if os.getpid() != self.process:
            return
        try:
            if self.device is not None:
                self.come_to_an_end(why)
        finally:
            self._is_closed.set()
            self._watch.join()
            self._under_way.clear()

    def await_under_way(self) -> None:
        """Wait for what is on the device, or end it where a rank has left without its part, or the device fails."""
        began = time.monotonic()
        while not self._is_let_go() and self.is_open():
            if time.monotonic() - began > _AFTER_LEAVING and any(map(self.under.has_left, range(self.size))):
                self.end(PeerLostError("operations on devices were ended: another rank has left without its part"))
            time.sleep(0.001)

    def _is_let_go(self) -> bool:
        try:
            return self._let_go()
        except EngineError as error:
            self.end(error)
            return True

    @abstractmethod
    def is_open(self) -> bool:
        """Tell whether there are links that have not been ended."""


def _is_surely_reached(end: End) -> bool:
    try:
        return end.is_reached()
    except EngineError:  # of a device that is beyond help
        return False
