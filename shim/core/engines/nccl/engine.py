"""CUDA tensors by NCCL, once the ranks have agreed on the call by way of the group's engine in host memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from shim.core.engines.base import Request, Tensor
from shim.core.engines.devices.work import DeviceWork, EndEvent
from shim.core.engines.layered import LayeredEngine
from shim.core.engines.nccl import moves
from shim.core.engines.nccl.arithmetic import check
from shim.core.engines.nccl.device_link import DeviceLink
from shim.core.engines.nccl.device_links import ALL_RANKS, DeviceLinks, check_libraries
from shim.core.engines.nccl.driver import Event
from shim.core.engines.nccl.link_choice import between_all
from shim.core.engines.nccl.messages import NcclMessages
from shim.core.reduce_ops import ReduceOp

if TYPE_CHECKING:
    from shim.core.engines.base import Engine
    from shim.core.work import EngineWork

_REDUCING = ("all_reduce", "reduce", "reduce_scatter")


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
        self.links = DeviceLinks(under, rank, size)
        self.cuda = self.links.cuda
        self._messages = NcclMessages(under, self.links)
        # Of the operation that is being put on a stream, of which there is one at a time.
        self.link: DeviceLink
        self._stream: Any = None

    @staticmethod
    def check_is_there() -> None:
        """Raise EngineError where this process has no NCCL, or no CUDA; neither is begun."""
        check_libraries()

    def arrive(self, request: Request, move: Callable[[Request], object], now: bool = False) -> EngineWork | None:
        """See ``Engine``. The operation is ordered on the stream that is the caller's current one now, and not finished."""
        if request.dtype and request.collective in _REDUCING:
            check(request.dtype, ReduceOp(request.op), request.factor)
        self.links.settle_device(request.device_number)
        if now:
            return self.under.arrive(request, partial(self._launch_on, request.current_stream(), move), True)
        ending = EndEvent()
        begin = self.links.event_before(request)
        agreement = self.under.arrive(request, partial(self._launch_after, begin, move, ending), False)
        return DeviceWork(self.links, request, agreement, ending)

    def barrier(self, now: bool = False, before: str = "") -> EngineWork | None:
        """See ``Engine``. It has no tensors, and no device."""
        return self.under.barrier(now, before)

    def _launch_on(self, stream: int, move: Callable[[Request], object], request: Request) -> None:
        with self._launching(stream):
            move(request)

    def _launch_after(
        self, begin: Event, move: Callable[[Request], object], ending: EndEvent, request: Request
    ) -> None:
        own = self._of_all_ranks().stream.handle
        with self._launching(own):
            begin.make_wait(own)
            move(request)
            ending.event = self.links.end_of(own, request)

    @contextmanager
    def _launching(self, stream: Any) -> Iterator[None]:
        self.link, self._stream = self._of_all_ranks(), stream
        with self.links.launching(self.link):
            yield

    def _of_all_ranks(self) -> DeviceLink:
        return self.links.of(ALL_RANKS, partial(between_all, self.links))

    def launch(self, function: str, *arguments: Any) -> None:
        """Call one of NCCL's functions that put an operation on a stream."""
        self.link.launch(function, *arguments, self._stream)

    def group(self, has_messages: bool) -> AbstractContextManager[object]:
        """Have what is launched within carried out as one. See ``DeviceLink``."""
        return self.link.group(self._stream, has_messages)

    @contextmanager
    def room(self, size: int) -> Iterator[int]:
        """Give *size* bytes of the device for what is launched within."""
        with self.cuda.room(size, self._stream) as at:
            yield at

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes of the device, behind what was launched before."""
        self.cuda.call("cuMemcpyDtoDAsync_v2", target, source, size, self._stream)

    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> EngineWork | None:
        """See ``Engine``."""
        return self._messages.send(tensor, peer, tag, now)

    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> EngineWork | int:
        """See ``Engine``."""
        return self._messages.receive(tensor, peer, tag, now)

    def figures(self) -> str:
        """See ``Engine``."""
        return self.links.description

    def close(self, why: str = "") -> None:
        """See ``Engine``; *under* is not closed. Waits for what is on the device, unless the group ends because of *why*."""
        self.links.close(why)
