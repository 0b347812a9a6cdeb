"""The links of one group: made when they are first needed, watched, and ended all together.

A link is NCCL's, or, where its ranks share a device, what stands in for it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from ctypes import sizeof
from functools import partial
from typing import TYPE_CHECKING, Any

from shim.core.engines.defaults import COLLECTIVE_TAG
from shim.core.engines.devices.watched_links import _AFTER_LEAVING, _BETWEEN_CHECKS, End, WatchedLinks
from shim.core.engines.nccl.device_link import DeviceLink, NcclLink, new_identity
from shim.core.engines.nccl.driver import Event, driver, find_driver
from shim.core.engines.nccl.ender import Ender
from shim.core.engines.nccl.library import UniqueId, library
from shim.core.engines.nccl.one_device_link import OneDeviceLink
from shim.core.engines.nccl.pool_turns import HostExchange
from shim.errors import EngineError, ShimError, StateError

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.base import Engine

ALL_RANKS = (-1, -1)  # in place of a message's two ranks
_FOR_A_LAUNCH = 1.0  # seconds that NCCL's functions have to return before an abort does not wait for them
_FOR_AN_END = 30.0  # seconds that NCCL's functions that end links have
_GROUPS_ABORTS = 22200  # the first NCCL that aborts several links at once
# Tags of engines, as COLLECTIVE_TAG is: of all ranks, and of two ranks for messages from the lower rank and to it.
_OF_ALL, _UPWARDS, _DOWNWARDS = (COLLECTIVE_TAG + number for number in (1, 2, 3))
_OVER_NCCL, _ON_ONE_DEVICE, _ON_SOME = b"n", b"o", b"s"
_DEVICE_BYTES = 17
_SHARES_DEVICES = 23000  # the first NCCL that can be told to
_HALF_FOR_ALL, _HALF_FOR_MESSAGES = 8 << 20, 1 << 20  # bytes of a pool's


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
        self._making = threading.RLock()  # of both
        self._ender = Ender(self._in_context)
        super().__init__(under, rank, size, "cuda")

    @contextmanager
    def on_device(self) -> Iterator[None]:
        with self.cuda.on(self.number):
            yield

    @contextmanager
    def launching(self, by: DeviceLink) -> Iterator[None]:
        """Have nobody else launch or end anything meanwhile, as far as *by* needs that. Raises what has ended the links."""
        with by.lock or nullcontext(), self.on_device():
            self.check_intact()
            yield

    def of(self, key: tuple[int, int], make: Callable[[], DeviceLink]) -> DeviceLink:
        """Return the link called *key*, for which all its ranks call *make* when it is first needed."""
        if key not in self._made:
            self.check_intact()
            with self._making:
                self._ender.begin()
            made = self.connected(partial(self._made_on_device, make), self._drop)
            with self._making:
                self._made[key] = made
                if self._failure is not None:  # which has come meanwhile
                    self._abort_all()
            if self._is_closed.is_set():
                self._release()
        self.check_intact()
        return self._made[key]

    def _made_on_device(self, make: Callable[[], DeviceLink]) -> DeviceLink:
        with self._in_context():
            return make()

    @contextmanager
    def _in_context(self) -> Iterator[None]:
        """Have a thread that is not the program's work on the device, whatever the program captures meanwhile."""
        with self.on_device(), self.cuda.beside_captures():
            yield

    def _drop(self, late: DeviceLink) -> None:
        with self.on_device():
            late.abort()
            late.release()

    @property
    def description(self) -> str:
        """What the collectives go over, as far as it is known by now."""
        made = self._made.get(ALL_RANKS)
        return "NCCL, or what its ranks share" if made is None else made.description

    def current_stream(self, request: Request) -> int:
        return request.current_stream()

    def event_before(self, request: Request) -> Event:
        """See ``WatchedLinks``. Raises UnsupportedError where nothing can be launched behind what is on the stream."""
        with self.on_device():
            return self.event_behind(self.stream_for(request))

    def stream_for(self, request: Request) -> int:
        """Return the stream that is current here for an operation that is yet to be agreed on. Raises UnsupportedError for one that no link can take."""
        stream = request.current_stream()
        for made in list(self._made.values()):
            made.check_stream(stream)
        return stream

    def event_behind(self, stream: Any) -> Event:
        event = Event(self.cuda)
        event.record(stream)
        return event

    def end_of(self, stream: Any, request: Request) -> Event:
        """Return an event behind what is on *stream* now, and keep the tensors of *request* until it is reached; a graph's are the program's to keep."""
        end = self.event_behind(stream)
        if not end.is_captured:
            self.keep(stream if isinstance(stream, int) else stream.value, end, request)
        return end

    def _let_go(self) -> bool:
        with self.cuda.beside_captures():
            return super()._let_go()

    def library_failure(self) -> str:
        return next(filter(None, (made.failure() for made in list(self._made.values()))), "")

    def end(self, error: ShimError) -> None:
        """See ``WatchedLinks``. A launch from which NCCL does not return is ended by this too."""
        until = time.monotonic() + _FOR_A_LAUNCH
        locks = [made.lock for made in list(self._made.values()) if made.lock is not None]
        held = [lock for lock in locks if lock.acquire(timeout=max(0.0, until - time.monotonic()))]
        try:
            self._cut_off(error)
            self._abort_all()
        finally:
            for lock in held:
                lock.release()

    def _abort_all(self) -> None:
        with self._making:
            made = [self._made[key] for key in sorted(self._made)]
            self._ended += made
            self._made.clear()
        if not made:
            return

        def abort() -> None:
            # NCCL aborts several at once, where it can: one may wait for a kernel that is queued behind another's.
            together = self.nccl.group() if self.nccl.version_number >= _GROUPS_ABORTS else nullcontext()
            with suppress(EngineError), together:
                for one in made:
                    with suppress(EngineError):  # the others are to be ended all the same
                        one.abort()

        with suppress(EngineError):  # of a device that is beyond help
            self._ender.ends(abort, time.monotonic() + _FOR_AN_END)

    def is_reached(self, end: End) -> bool:
        with self._in_context():
            return end.is_reached()

    def come_to_an_end(self, why: str) -> None:
        self._failure = self._failure or StateError("the group was closed")
        if not self._have_launched():
            why = why or "operations on devices were ended: another rank has left without its part"
        if why:
            self.end(EngineError(why))
        with self.on_device():
            self.await_under_way()
            self.cuda.call("cuCtxSynchronize")
        until, late = time.monotonic() + _FOR_AN_END, 0
        for key, link in sorted(self._made.items()):  # in the same order on all ranks, who wait for each other
            is_ended = True
            if key in self._made:  # the watch may end them meanwhile
                with link.lock or nullcontext():
                    is_ended = self._ender.ends(link.destroy, until)
            if self._made.pop(key, None) is not None and is_ended:
                self._ended.append(link)
            late += not is_ended
        self._release()
        if late:
            raise EngineError(
                f"NCCL has not let go of {late} of the group's communicators within {_FOR_AN_END:g} s\n"
                "If a CUDA graph holds calls of the group, delete it before the group is closed."
            )

    def _have_launched(self) -> bool:
        """Wait until what was being launched is under way, and tell whether it is: a first launch waits for ranks that may have left."""
        began = time.monotonic()
        for lock in [link.lock for link in list(self._made.values()) if link.lock is not None]:
            while not lock.acquire(timeout=_BETWEEN_CHECKS):
                if time.monotonic() - began > _AFTER_LEAVING and any(map(self.under.has_left, range(self.size))):
                    return False
            lock.release()
        return True

    def close(self, why: str) -> None:
        try:
            super().close(why)
        finally:
            self._ender.close()

    def _release(self) -> None:
        with self.on_device():
            while self._ended:
                self._ended.pop().release()

    def is_open(self) -> bool:
        return bool(self._made)


def between_all(links: DeviceLinks) -> DeviceLink:
    """Return the link of all ranks, which all of them make at once. Raises EngineError where some of them share a device."""
    under, rank, size = links.under, links.rank, links.size
    device, answer = bytearray(_device_of(links)), bytearray(1 + sizeof(UniqueId))
    if rank == 0:
        rooms = [device, *(bytearray(_DEVICE_BYTES) for _ in range(1, size))]
        for peer in range(1, size):
            under.receive(rooms[peer], peer, COLLECTIVE_TAG, True)
        kind = _kind_of(rooms)
        answer[:1] = kind
        if kind == _OVER_NCCL:
            answer[1:] = new_identity(links.nccl)
        for peer in range(1, size):
            under.send(answer, peer, COLLECTIVE_TAG, True)
    else:
        under.send(device, 0, COLLECTIVE_TAG, True)
        under.receive(answer, 0, COLLECTIVE_TAG, True)
    if answer.startswith(_ON_SOME):
        raise EngineError(
            "some ranks of the group share a device, and others have another one\n"
            'Have all of them use one device, or each one its own, or make the group with backend="gloo".'
        )
    if answer.startswith(_ON_ONE_DEVICE):
        processes = HostExchange(under, range(size), rank, _OF_ALL)
        return OneDeviceLink(links.cuda, links.number, processes, links.check_intact, _HALF_FOR_ALL)
    return NcclLink(links.nccl, links.cuda, answer[1:], size, rank)


def between_two(links: DeviceLinks, key: tuple[int, int]) -> DeviceLink:
    """Return the link for messages from one rank to another, *key*, which both make at once."""
    rank = key.index(links.rank)
    processes = HostExchange(links.under, key, rank, _UPWARDS if key[0] < key[1] else _DOWNWARDS)
    if _kind_of(processes.exchange(_device_of(links))) == _ON_ONE_DEVICE:
        return OneDeviceLink(links.cuda, links.number, processes, links.check_intact, _HALF_FOR_MESSAGES)
    identity = new_identity(links.nccl) if rank == 0 else bytes(sizeof(UniqueId))
    return NcclLink(links.nccl, links.cuda, processes.exchange(identity)[0], 2, rank)


def _device_of(links: DeviceLinks) -> bytes:
    """Return what names this rank's device, and whether NCCL has been told that it may be shared."""
    is_told = os.environ.get("NCCL_MULTI_RANK_GPU_ENABLE", "0") != "0"
    may_share = is_told and links.nccl.version_number >= _SHARES_DEVICES
    return links.cuda.identity_of(links.number) + bytes([may_share])


def _kind_of(devices: Sequence[bytes | bytearray]) -> bytes:
    different = len({bytes(device[:-1]) for device in devices})
    if different == len(devices) or any(device[-1] for device in devices):
        return _OVER_NCCL
    return _ON_ONE_DEVICE if different == 1 else _ON_SOME
