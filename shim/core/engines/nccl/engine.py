"""CUDA tensors by NCCL, once the ranks have agreed on the call by way of the group's engine in host memory."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_void_p, sizeof
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from shim.core.engines.base import Request, Tensor
from shim.core.engines.defaults import COLLECTIVE_TAG
from shim.core.engines.layered import LayeredEngine
from shim.core.engines.nccl import moves
from shim.core.engines.nccl.arithmetic import check
from shim.core.engines.nccl.driver import Event, Stream, driver, find_driver
from shim.core.engines.nccl.library import UniqueId, library
from shim.core.engines.nccl.messages import Messages
from shim.core.engines.nccl.work import DeviceWork, Ending
from shim.core.engines.network.threads import begin_thread
from shim.core.reduce_ops import ReduceOp
from shim.errors import TensorError

if TYPE_CHECKING:
    from shim.core.engines.base import Engine
    from shim.core.work import EngineWork

__all__ = ["NcclEngine", "Way"]

_BETWEEN_LOOKS = 0.1  # seconds
_IDENTITY = bytes(sizeof(UniqueId))


class Way(NamedTuple):
    """What messages go over in one direction."""

    communicator: c_void_p
    stream: Stream


class NcclEngine(LayeredEngine):
    """Carries out the collectives of one group for tensors on CUDA devices, each rank's on one of its own.

    *under* serves the same group in host memory: it orders the calls of both kinds, compares them, and knows who is lost. When all ranks
    have agreed, NCCL's calls are put on the caller's current stream: what is there goes first, and what comes there later sees the
    outputs. An operation that is started goes on a stream of the engine's, between events, so that it may overlap with what the caller does.
    """

    name = "nccl"
    moves: ClassVar[ModuleType] = moves
    reaches_devices: ClassVar[bool] = True

    def __init__(self, under: Engine, rank: int, size: int) -> None:
        super().__init__(under, rank, size)
        self._nccl, self._cuda = library(), driver()
        self.call = self._nccl.call
        self._process = os.getpid()
        self._communicators: dict[int, c_void_p] = {}  # of all ranks, by the number of this rank's device; one at most
        self._streams: dict[int, Stream] = {}  # likewise, for operations that are started
        self._ways: dict[tuple[int, int, int], Way] = {}  # by the device's number, and the ranks at both ends
        self._messages = Messages(self)
        self._scratch: dict[int, tuple[int, int]] = {}
        self._under_way: deque[tuple[Event, Request]] = deque()  # whose tensors a stream of the engine's uses
        self._keeping = threading.Lock()
        self._watch: threading.Thread | None = None
        self._is_closed = threading.Event()
        # Of the operation that is being put on a stream, of which there is one at a time.
        self.communicator = c_void_p()
        self._stream: Any = None

    @staticmethod
    def check_is_there() -> None:
        """Raise EngineError where this process has no NCCL, or no CUDA; neither is begun."""
        library()
        find_driver()

    def arrive(self, request: Request, move: Callable[[Request], object], now: bool = False) -> EngineWork | None:
        """See ``Engine``. The operation is ordered on the stream that is the caller's current one now, and not finished."""
        if request.dtype and request.collective in ("all_reduce", "reduce", "reduce_scatter"):
            check(request.dtype, ReduceOp(request.op))
        self._check_device(request.device_number)
        if now:
            return self.under.arrive(request, partial(self._put_on, request.current_stream(), move), True)
        ending = Ending()
        agreement = self.under.arrive(
            request, partial(self._put_beside, self.now_on_stream(request), move, ending), False
        )
        return DeviceWork(self, request, agreement, ending)

    def _check_device(self, number: int) -> None:
        """Refuse another device than that of the communicator, which all ranks would have to make anew."""
        for mine in self._communicators:
            if mine != number:
                raise TensorError(
                    f"the tensors must be on cuda:{mine}, which this rank uses in the group, got tensors on cuda:{number}\n"
                    "Make another group for another device."
                )

    def _put_on(self, stream: int, move: Callable[[Request], object], request: Request) -> None:
        with self._cuda.on(request.device_number):
            self.communicator = self._communicator(request.device_number)
            self._stream = stream
            move(request)

    def now_on_stream(self, request: Request) -> Event:
        """Return an event behind what is on the stream that is current here, now: what comes there later may itself wait for the operation."""
        with self._cuda.on(request.device_number):
            now = Event(self._cuda)
            now.record(request.current_stream())
        return now

    def _put_beside(self, begin: Event, move: Callable[[Request], object], ending: Ending, request: Request) -> None:
        with self._cuda.on(request.device_number):
            self.communicator = self._communicator(request.device_number)
            own = self._streams[request.device_number]
            begin.make_wait(own.handle)
            self._stream = own.handle
            move(request)
            ending.event = self._end_of(own, request)

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
        self._check_device(number)  # once more: an operation before it may have made one meanwhile
        if number not in self._communicators:
            identity = bytearray(self.new_identity() if self.rank == 0 else _IDENTITY)
            if self.rank == 0:
                for peer in range(1, self.size):
                    self.under.send(identity, peer, COLLECTIVE_TAG, True)
            else:
                self.under.receive(identity, 0, COLLECTIVE_TAG, True)
            self._streams[number] = Stream(self._cuda)
            self._communicators[number] = self._joined(identity, self.size, self.rank)
        return self._communicators[number]

    def new_identity(self) -> bytes:
        """Return what the ranks of a new communicator have to know."""
        identity = UniqueId()
        self._nccl.call("ncclGetUniqueId", byref(identity))
        return bytes(identity)

    def way(self, number: int, source: int, target: int, identity: bytes) -> Way:
        """Return what messages of device *number* go over from rank *source* to *target*, of which one is this rank."""
        key = (number, source, target)
        if key not in self._ways:
            with self._cuda.on(number):
                made = self._joined(identity, 2, int(self.rank == target))
                self._ways[key] = Way(made, Stream(self._cuda))
        return self._ways[key]

    def _joined(self, identity: bytes | bytearray, size: int, rank: int) -> c_void_p:
        made = c_void_p()
        self._nccl.call("ncclCommInitRank", byref(made), size, UniqueId.from_buffer_copy(identity), rank)
        if self._watch is None:
            self._watch = begin_thread("shim nccl watch", self._abort_when_lost)
        return made

    def put_message(self, function: str, request: Request, begin: Event, way: Way, *arguments: int) -> Event:
        """Call one of NCCL's functions for a message on the stream of its *way*, behind *begin*, and return its end."""
        with self._cuda.on(request.device_number):
            begin.make_wait(way.stream.handle)
            self._nccl.call(function, *arguments, way.communicator, way.stream.handle)
            return self._end_of(way.stream, request)

    def _end_of(self, stream: Stream, request: Request) -> Event:
        """Return an event behind what is on *stream* now, and keep the tensors of *request* until it is reached."""
        with self._keeping:
            while self._under_way and self._under_way[0][0].is_reached():
                self._under_way.popleft()
            end = Event(self._cuda)
            end.record(stream.handle)
            self._under_way.append((end, request))
        return end

    def order_after(self, end: Event, request: Request) -> None:
        """Have what comes next on the stream that is current here come after *end*."""
        with self._cuda.on(request.device_number):
            end.make_wait(request.current_stream())

    def scratch(self, number: int, size: int) -> int:
        """Return memory of device *number* for what nobody reads; there is one, which grows."""
        if self._scratch.get(number, (0, 0))[1] < size:
            at = c_void_p()
            with self._cuda.on(number):
                self._cuda.call("cuMemAlloc_v2", byref(at), size)
            self._scratch[number] = (at.value or 0, size)
        return self._scratch[number][0]

    def _abort_when_lost(self) -> None:
        """End NCCL's operations when a rank is lost, for which their kernels would wait for ever."""
        while not self._is_closed.wait(_BETWEEN_LOOKS):
            others = (rank for rank in range(self.size) if rank != self.rank)
            if not self.under.is_usable() or any(
                self.under.is_gone(rank) and not self.under.has_left(rank) for rank in others
            ):
                for _, communicator in self._numbered():
                    self._nccl.call("ncclCommAbort", communicator)
                return

    def _numbered(self) -> list[tuple[int, c_void_p]]:
        """Return the communicators with the numbers of their devices; this engine has none from now on."""
        numbered = [*self._communicators.items(), *((key[0], way.communicator) for key, way in self._ways.items())]
        self._communicators, self._ways = {}, {}
        return numbered

    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> EngineWork | None:
        """See ``Engine``."""
        message = self._messages.send(tensor, peer, tag)
        if not now:
            return message
        message.wait()
        return None

    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> EngineWork | int:
        """See ``Engine``."""
        message = self._messages.receive(tensor, peer, tag)
        if not now:
            return message
        message.wait()
        return message.source_rank()

    def figures(self) -> str:
        """See ``Engine``."""
        return f"NCCL {self._nccl.version} of {self._nccl.path}"

    def close(self, why: str = "") -> None:
        """See ``Engine``; *under* is not closed. Waits for what is on the devices, which ends when a rank is lost."""
        if os.getpid() != self._process:
            return
        streams = [*self._streams.values(), *(way.stream for way in self._ways.values())]
        for number in {*self._streams, *(number for number, _, _ in self._ways)}:
            with self._cuda.on(number):
                self._cuda.call("cuCtxSynchronize")
        self._is_closed.set()
        if self._watch is not None:
            self._watch.join()
        for number, communicator in self._numbered():
            with self._cuda.on(number):
                self._nccl.call("ncclCommDestroy", communicator)
        for stream in streams:
            stream.close()
        self._under_way.clear()
        del self._messages  # which holds this engine, and so the group's memory
