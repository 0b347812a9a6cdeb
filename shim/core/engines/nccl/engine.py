"""CUDA tensors by NCCL, once the ranks have agreed on the call by way of the group's engine in host memory."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_void_p
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from shim.core.engines.base import Engine, Request, Tensor
from shim.core.engines.defaults import COLLECTIVE_TAG
from shim.core.engines.nccl import moves
from shim.core.engines.nccl.arithmetic import check
from shim.core.engines.nccl.driver import Event, Stream, driver
from shim.core.engines.nccl.library import UniqueId, library
from shim.core.engines.nccl.work import DeviceWork
from shim.core.engines.network.threads import begin_thread
from shim.core.reduce_ops import ReduceOp
from shim.errors import UnsupportedError

if TYPE_CHECKING:
    from shim.core.work import EngineWork

__all__ = ["NcclEngine"]

_BETWEEN_LOOKS = 0.1  # seconds


class NcclEngine(Engine):
    """Carries out the collectives of one group for tensors on CUDA devices, each rank's on one of its own.

    *under* serves the same group in host memory: it orders the calls of both kinds, compares them, and knows who is lost. When all ranks
    have agreed, NCCL's calls are put on the caller's current stream: what is there goes first, and what comes there later sees the
    outputs. An operation that is started goes on a stream of the engine's, between events, so that it may overlap with what the caller does.
    """

    name = "nccl"
    moves: ClassVar[ModuleType] = moves
    reaches_devices: ClassVar[bool] = True

    def __init__(self, under: Engine, rank: int, size: int) -> None:
        self.under, self.rank, self.size = under, rank, size
        self._nccl, self._cuda = library(), driver()
        self.call = self._nccl.call
        self._process = os.getpid()
        self._communicators: dict[int, c_void_p] = {}  # by the device's number
        self._streams: dict[int, Stream] = {}
        self._under_way: deque[tuple[Event, Request]] = deque()  # tensors that a stream of the engine's uses
        self._is_closed = False
        # Of the operation that is being put on a stream, of which there is one at a time.
        self.communicator = c_void_p()
        self._stream: Any = None

    def arrive(self, request: Request, move: Callable[[Request], object], now: bool = False) -> EngineWork | None:
        """See ``Engine``. The operation is ordered on the stream that is the caller's current one now, and not finished."""
        if request.dtype and request.collective in ("all_reduce", "reduce", "reduce_scatter"):
            check(request.dtype, ReduceOp(request.op))
        stream = request.current_stream()
        if now:
            return self.under.arrive(request, partial(self._put_on, stream, move), True)
        work = DeviceWork(self._cuda, request)
        work.under = self.under.arrive(request, partial(self._put_beside, stream, move, work), False)
        return work

    def _put_on(self, stream: int, move: Callable[[Request], object], request: Request) -> None:
        with self._cuda.on(request.device_number):
            self.communicator = self._communicator(request.device_number)
            self._stream = stream
            move(request)

    def _put_beside(self, stream: int, move: Callable[[Request], object], work: DeviceWork, request: Request) -> None:
        with self._cuda.on(request.device_number):
            self.communicator = self._communicator(request.device_number)
            own = self._streams[request.device_number]
            own.wait_for(stream)
            self._stream = own.handle
            move(request)
            work.record(own.handle)
            while self._under_way and self._under_way[0][0].is_reached():
                self._under_way.popleft()[0].close()
            last = Event(self._cuda)
            last.record(own.handle)
            self._under_way.append((last, request))

    def launch(self, function: str, *arguments: int) -> None:
        """Call one of NCCL's functions that put an operation on a stream."""
        self._nccl.call(function, *arguments, self.communicator, self._stream)

    @contextmanager
    def group(self) -> Iterator[None]:
        """Have NCCL carry out as one what is launched within."""
        self._nccl.call("ncclGroupStart")
        try:
            yield
        finally:
            self._nccl.call("ncclGroupEnd")

    def _communicator(self, number: int) -> c_void_p:
        """Return the communicator for device *number*, which the first operation makes, in which all ranks are."""
        if number not in self._communicators:
            identity = UniqueId()
            if self.rank == 0:
                self._nccl.call("ncclGetUniqueId", byref(identity))
                for peer in range(1, self.size):
                    self.under.send(memoryview(identity).cast("B"), peer, COLLECTIVE_TAG, True)
            else:
                self.under.receive(memoryview(identity).cast("B"), 0, COLLECTIVE_TAG, True)
            made = c_void_p()
            self._nccl.call("ncclCommInitRank", byref(made), self.size, identity, self.rank)
            self._streams[number] = Stream(self._cuda)
            self._communicators[number] = made
            if len(self._communicators) == 1:
                begin_thread("shim nccl watch", self._abort_when_lost)
        return self._communicators[number]

    def _abort_when_lost(self) -> None:
        """End NCCL's operations when a rank is lost, for which their kernels would wait for ever."""
        while not self._is_closed:
            if not self.under.is_usable() or any(self._is_lost(rank) for rank in range(self.size)):
                self._abort()
                return
            time.sleep(_BETWEEN_LOOKS)

    def _is_lost(self, rank: int) -> bool:
        if rank == self.rank or not self.under.is_gone(rank):
            return False
        return not self.under.ending_of(rank).endswith(" left the group")

    def _abort(self) -> None:
        communicators, self._communicators = self._communicators, {}
        for communicator in communicators.values():
            self._nccl.call("ncclCommAbort", communicator)

    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> EngineWork | None:
        """See ``Engine``."""
        raise UnsupportedError("messages of tensors on a CUDA device are not there yet\nSet SHIM_STAGE=host, or use a collective.")

    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> EngineWork | int:
        """See ``Engine``."""
        raise UnsupportedError("messages of tensors on a CUDA device are not there yet\nSet SHIM_STAGE=host, or use a collective.")

    def refuse(self, reason: str) -> None:
        """See ``Engine``."""
        self.under.refuse(reason)

    def is_gone(self, rank: int) -> bool:
        """See ``Engine``."""
        return self.under.is_gone(rank)

    def ending_of(self, rank: int) -> str:
        """See ``Engine``."""
        return self.under.ending_of(rank)

    def is_usable(self) -> bool:
        """See ``Engine``."""
        return self.under.is_usable()

    def set_timeout(self, seconds: float) -> None:
        """See ``Engine``."""
        self.under.set_timeout(seconds)

    def figures(self) -> str:
        """See ``Engine``."""
        return f"NCCL {self._nccl.version} of {self._nccl.path}"

    def close(self, why: str = "") -> None:
        """See ``Engine``; *under* is not closed. Waits for what is on the devices."""
        self._is_closed = True
        if os.getpid() != self._process:
            return
        communicators, self._communicators = self._communicators, {}
        for number, communicator in communicators.items():
            with self._cuda.on(number):
                self._cuda.call("cuCtxSynchronize")
                self._nccl.call("ncclCommDestroy", communicator)
                self._streams.pop(number).close()
        self._under_way.clear()
