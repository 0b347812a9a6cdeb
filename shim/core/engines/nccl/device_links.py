"""The links of one group: made when they are first needed, watched, and ended all together."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from shim.core.engines.devices.links import loss_in
from shim.core.engines.nccl.device_link import LAUNCHING, DeviceLink
from shim.core.engines.nccl.driver import Event, driver, find_driver
from shim.core.engines.nccl.library import library
from shim.core.engines.network.threads import begin_thread
from shim.errors import EngineError, PeerLostError, ShimError, StateError, TensorError

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.base import Engine

__all__ = ["ALL_RANKS", "DeviceLinks", "check_libraries"]

ALL_RANKS = (-1, -1)  # in place of a message's two ranks
_BETWEEN_LOOKS = 0.1  # seconds
_FOR_A_LAUNCH = 1.0  # seconds that NCCL's functions have to return before an abort does not wait for them
_AFTER_LEAVING = (
    30.0  # seconds that closing waits for operations with a rank that has left, whose part may be under way
)
_GROUPS_ABORTS = 22200  # the first NCCL that aborts several links at once


def check_libraries() -> None:
    """Raise EngineError where this process has no NCCL, or no CUDA; neither is begun."""
    library()
    find_driver()


class DeviceLinks:
    """The links of rank *rank* in the group that *under* serves in host memory, all for one device.

    A thread ends them when a rank is lost, for which their kernels would wait for ever, and when NCCL reports an error.
    """

    def __init__(self, under: Engine, rank: int, size: int) -> None:
        self.under, self.rank, self.size = under, rank, size
        self.nccl, self.cuda = library(), driver()
        self.process = os.getpid()
        self.device: int | None = None  # the number of this rank's
        self._made: dict[tuple[int, int], DeviceLink] = {}
        self._ended: list[DeviceLink] = []
        self._keeping = threading.Lock()  # of what follows
        # By the stream that uses the tensors.
        self._under_way: defaultdict[Any, deque[tuple[Event, Request]]] = defaultdict(deque)
        self._failure: ShimError | None = None  # which has ended the links
        self.ended_by = ""
        self._is_closed = threading.Event()
        self._watch = begin_thread("shim nccl watch", self._look_after)

    def settle_device(self, number: int) -> None:
        """Keep to the device of the first call, whose links all ranks would have to make anew for another."""
        if self.device is None:
            self.device = number
        if self.device != number:
            raise TensorError(
                f"the tensors must be on cuda:{self.device}, which this rank uses in the group, got tensors on cuda:{number}\n"
                "Make another group for another device."
            )

    @property
    def number(self) -> int:
        """The number of the group's device."""
        assert self.device is not None
        return self.device

    @contextmanager
    def on_device(self) -> Iterator[None]:
        """Have the thread's calls be about the group's device."""
        with self.cuda.on(self.number):
            yield

    @contextmanager
    def launching(self, by: DeviceLink) -> Iterator[None]:
        """Have nobody else launch or end anything meanwhile, as far as *by* needs that. Raises what has ended the links."""
        with by.lock, self.on_device():
            self.check_intact()
            yield

    def check_intact(self) -> None:
        """See ``Links``."""
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    def of(self, key: tuple[int, int], make: Callable[[], DeviceLink]) -> DeviceLink:
        """Return the link called *key*, for which all its ranks call *make* when it is first needed."""
        if key not in self._made:
            self.check_intact()
            with self.on_device():
                made = make()
                with LAUNCHING:
                    self._made[key] = made
                    if self._failure is not None:  # which has come meanwhile
                        self._abort_all()
                if self._is_closed.is_set():
                    self._release()
        self.check_intact()
        return self._made[key]

    @property
    def description(self) -> str:
        """What the collectives go over, as far as it is known by now."""
        made = self._made.get(ALL_RANKS)
        return "NCCL, or what its ranks share" if made is None else made.description

    def event_before(self, request: Request) -> Event:
        """See ``Links``."""
        with self.on_device():
            now = Event(self.cuda)
            now.record(request.current_stream())
        return now

    def order_after(self, end: Event, request: Request) -> None:
        """See ``Links``."""
        if end.is_cut_off:
            self.check_intact()
        with self.on_device():
            end.make_wait(request.current_stream())

    def is_reached(self, end: Event) -> bool:
        """See ``Links``."""
        with self.on_device():
            return end.is_reached()

    def end_of(self, stream: Any, request: Request) -> Event:
        """Return an event behind what is on *stream* now, and keep the tensors of *request* until it is reached."""
        end = Event(self.cuda)
        end.record(stream)
        with self._keeping:
            self._under_way[stream if isinstance(stream, int) else stream.value].append((end, request))
        return end

    def _look_after(self) -> None:
        self.cuda.let_thread_look()
        while not self._is_closed.wait(_BETWEEN_LOOKS):
            if self.device is None:
                continue
            try:
                with self.on_device():
                    self._let_go()
                self._fail_if_lost()
            except EngineError as error:  # of a device that is beyond help
                self.end(error)

    def _let_go(self) -> bool:
        """Let the tensors go that no stream uses any more, and tell whether there are none left."""
        ended = []  # their memory is given back when the lock is not held
        with self._keeping:
            for kept in self._under_way.values():
                while kept and kept[0][0].is_reached():
                    ended.append(kept.popleft())
            return not any(self._under_way.values())

    def _fail_if_lost(self) -> None:
        """End the links if a rank is lost, or NCCL reports an error."""
        loss = loss_in(self.under, self.rank, self.size)
        if loss is not None:
            self.end(loss)
        for made in list(self._made.values()):
            if failure := made.failure():
                self.end(EngineError(failure))
                return

    def end(self, error: ShimError) -> None:
        """End all operations, and refuse more with *error*. A launch from which NCCL does not return is ended by this too."""
        is_alone = LAUNCHING.acquire(timeout=_FOR_A_LAUNCH)
        try:
            self._failure = self._failure or error
            self.ended_by = self.ended_by or str(error)
            with self.on_device(), self._keeping:
                for end in (end for kept in self._under_way.values() for end, _ in kept):
                    end.is_cut_off = not end.is_reached()
            self._abort_all()
        finally:
            if is_alone:
                LAUNCHING.release()

    def _abort_all(self) -> None:
        made = [self._made[key] for key in sorted(self._made)]
        if not made:
            return
        self._ended += made
        self._made.clear()
        # NCCL aborts several at once, where it can: one may wait for a kernel that is queued behind another's.
        together = self.nccl.group() if self.nccl.version_number >= _GROUPS_ABORTS else nullcontext()
        with self.on_device(), together:
            for one in made:
                try:
                    one.abort()
                except EngineError:
                    continue  # the others are to be ended all the same

    def close(self, why: str) -> None:
        """Wait for what is on the device, or end it because of *why*, if any; nothing is launched from now on."""
        if os.getpid() != self.process:
            return
        try:
            if self.device is not None:
                self._come_to_an_end(why)
        finally:
            self._is_closed.set()
            self._watch.join()
            self._under_way.clear()

    def _come_to_an_end(self, why: str) -> None:
        with LAUNCHING:
            self._failure = self._failure or StateError("the group was closed")
        if why:
            self.end(EngineError(why))
        with self.on_device():
            self._await_under_way()
            self.cuda.call("cuCtxSynchronize")
        for key, link in sorted(self._made.items()):  # in the same order on all ranks, who wait for each other
            if key in self._made:  # the watch may end them meanwhile
                with link.lock, self.on_device():
                    link.destroy()
            if self._made.pop(key, None) is not None:
                self._ended.append(link)
        self._release()

    def _release(self) -> None:
        with self.on_device():
            while self._ended:
                self._ended.pop().release()

    def _await_under_way(self) -> None:
        began = time.monotonic()
        while not self._let_go() and self._made:
            if time.monotonic() - began > _AFTER_LEAVING and any(map(self.under.has_left, range(self.size))):
                self.end(PeerLostError("operations on devices were ended: another rank has left without its part"))
            time.sleep(0.001)
