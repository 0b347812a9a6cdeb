"""The links of one group: made when they are first needed, watched, and ended all together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from shim.core.engines.devices.watched_links import WatchedLinks
from shim.core.engines.nccl.device_link import LAUNCHING, DeviceLink
from shim.core.engines.nccl.driver import Event, driver, find_driver
from shim.core.engines.nccl.library import library
from shim.errors import EngineError, ShimError, StateError

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.base import Engine

ALL_RANKS = (-1, -1)  # in place of a message's two ranks
_FOR_A_LAUNCH = 1.0  # seconds that NCCL's functions have to return before an abort does not wait for them
_GROUPS_ABORTS = 22200  # the first NCCL that aborts several links at once


def check_libraries() -> None:
    """Raise EngineError where this process has no NCCL, or no CUDA; neither is begun."""
    library()
    find_driver()


class DeviceLinks(WatchedLinks):
    """See ``WatchedLinks``. Those of NCCL, or of what stands in for it."""

    def __init__(self, under: Engine, rank: int, size: int) -> None:
        self.nccl, self.cuda = library(), driver()
        self._made: dict[tuple[int, int], DeviceLink] = {}
        self._ended: list[DeviceLink] = []
        super().__init__(under, rank, size, "cuda")

    @contextmanager
    def on_device(self) -> Iterator[None]:
        with self.cuda.on(self.number):
            yield

    @contextmanager
    def launching(self, by: DeviceLink) -> Iterator[None]:
        """Have nobody else launch or end anything meanwhile, as far as *by* needs that. Raises what has ended the links."""
        with by.lock, self.on_device():
            self.check_intact()
            yield

    def of(self, key: tuple[int, int], make: Callable[[], DeviceLink]) -> DeviceLink:
        """Return the link called *key*, for which all its ranks call *make* when it is first needed."""
        if key not in self._made:
            self.check_intact()
            made = self.connected(partial(self._made_on_device, make), self._drop)
            with LAUNCHING:
                self._made[key] = made
                if self._failure is not None:  # which has come meanwhile
                    self._abort_all()
            if self._is_closed.is_set():
                self._release()
        self.check_intact()
        return self._made[key]

    def _made_on_device(self, make: Callable[[], DeviceLink]) -> DeviceLink:
        with self.on_device():
            return make()

    def _drop(self, late: DeviceLink) -> None:
        with LAUNCHING, self.on_device():
            late.abort()
            late.release()

    @property
    def description(self) -> str:
        """What the collectives go over, as far as it is known by now."""
        made = self._made.get(ALL_RANKS)
        return "NCCL, or what its ranks share" if made is None else made.description

    def event_before(self, request: Request) -> Event:
        with self.on_device():
            now = Event(self.cuda)
            now.record(request.current_stream())
        return now

    def order_after(self, end: Event, request: Request) -> None:
        if end.is_cut_off:
            self.check_intact()
        with self.on_device():
            end.make_wait(request.current_stream())

    def end_of(self, stream: Any, request: Request) -> Event:
        """Return an event behind what is on *stream* now, and keep the tensors of *request* until it is reached."""
        end = Event(self.cuda)
        end.record(stream)
        self.keep(stream if isinstance(stream, int) else stream.value, end, request)
        return end

    def _look_after(self) -> None:
        self.cuda.let_thread_look()
        super()._look_after()

    def library_failure(self) -> str:
        return next(filter(None, (made.failure() for made in list(self._made.values()))), "")

    def end(self, error: ShimError) -> None:
        """See ``WatchedLinks``. A launch from which NCCL does not return is ended by this too."""
        is_alone = LAUNCHING.acquire(timeout=_FOR_A_LAUNCH)
        try:
            self._cut_off(error)
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

    def come_to_an_end(self, why: str) -> None:
        with LAUNCHING:
            self._failure = self._failure or StateError("the group was closed")
        if why:
            self.end(EngineError(why))
        with self.on_device():
            self.await_under_way()
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

    def is_open(self) -> bool:
        return bool(self._made)
