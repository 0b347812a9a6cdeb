"""CUDA tensors by NCCL, once the ranks have agreed on the call by way of the group's engine in host memory.

Each collective is made of NCCL's calls, which are put on a stream and return at once. What has parts of one size is one call; where
they do not lie one after the other here, they are copied together, or apart. Parts of different sizes are several calls in a group,
which NCCL carries out as one. Which of the two it is depends on nothing but the sizes, on which the ranks have agreed: NCCL would hang
where one rank makes one call, and another one several. Data that is only moved counts as bytes, so that its dtype does not matter.
Sums run in NCCL's order, and not in that of the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from shim.core.engines.base import Request
from shim.core.engines.devices.engine import REDUCING, DeviceEngine
from shim.core.engines.devices.messages import Message, Messages
from shim.core.engines.nccl.arithmetic import check, reduction_of
from shim.core.engines.nccl.device_link import DeviceLink
from shim.core.engines.nccl.device_links import ALL_RANKS, DeviceLinks, between_all, between_two, check_libraries
from shim.core.engines.nccl.driver import Event
from shim.core.reduce_ops import ReduceOp

if TYPE_CHECKING:
    from shim.core.engines.base import Engine
    from shim.core.work import EngineWork

_Places = Sequence[tuple[int, int]]  # addresses, and bytes
_BYTE = 1  # NCCL's uint8
# NCCL 2.20.3 to 2.29.3 leaves out the last elements of more bytes than that which a rank that is alone scales: NVIDIA/nccl#1950.
_MOST_SCALED_RIGHT, _FIRST_MENDED = 16 << 10, 22907


class NcclEngine(DeviceEngine):
    """Carries out the collectives of one group for tensors on CUDA devices, each rank's on one of its own.

    NCCL's calls are put on the caller's current stream: what is there goes first, and what comes there later sees the outputs.
    An operation that is started goes on a stream of the engine's, between events, so that it may overlap with what the caller does.
    """

    name = "nccl"
    links: DeviceLinks
    # Of the operation that is being put on a stream, of which there is one at a time.
    link: DeviceLink
    _stream: Any = None

    def __init__(self, under: Engine, rank: int, size: int) -> None:
        links = DeviceLinks(under, rank, size)
        super().__init__(under, links, NcclMessages(under, links))
        self.cuda = links.cuda

    @staticmethod
    def check_is_there() -> None:
        """Raise EngineError where this process has no NCCL, or no CUDA; neither is begun."""
        check_libraries()

    def arrive(self, request: Request, move: Callable[[Request], object], now: bool = False) -> EngineWork | None:
        """See ``Engine``. The operation is ordered on the stream that is the caller's current one now, and not finished."""
        if request.dtype and request.collective in REDUCING:
            check(request.dtype, ReduceOp(request.op), request.factor)
            move = self._reduce_alone if self.size == 1 else move
        self.links.settle_device(request.device_number)
        if now:
            with self.links.on_device():  # whose stream it is that CuPy tells
                stream = self.links.stream_for(request)
            return self.under.arrive(request, partial(self._launch_on, stream, move), True)
        return self._ordered(request, partial(self._launch_after, move))

    def _launch_on(self, stream: int, move: Callable[[Request], object], request: Request) -> None:
        with self._launching(stream):
            move(request)

    def _launch_after(self, move: Callable[[Request], object], begin: Event, request: Request) -> Event:
        own = self._of_all_ranks().stream.handle
        with self._launching(own), self.cuda.beside_captures():
            begin.make_wait(own)
            move(request)
            return self.links.end_of(own, request)

    @contextmanager
    def _launching(self, stream: Any) -> Iterator[None]:
        self.link, self._stream = self._of_all_ranks(), stream
        with self.links.launching(self.link):
            yield

    def _of_all_ranks(self) -> DeviceLink:
        return self.links.of(ALL_RANKS, partial(between_all, self.links))

    def _launch(self, function: str, *arguments: Any) -> None:
        """Call one of NCCL's functions that put an operation on a stream."""
        self.link.launch(function, *arguments, self._stream)

    def _group(self, has_messages: bool) -> AbstractContextManager[object]:
        """Have what is launched within carried out as one. See ``DeviceLink``."""
        return self.link.group(self._stream, has_messages)

    def _copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes of the device, behind what was launched before."""
        self.cuda.call("cuMemcpyDtoDAsync_v2", target, source, size, self._stream)

    def figures(self) -> str:
        return self.links.description

    def move_broadcast(self, request: Request) -> None:
        ((at, size),) = request.input_places or request.output_places
        self._launch("ncclBroadcast", at, at, size, _BYTE, request.root)

    def _reduce_alone(self, request: Request) -> None:
        """Reduce what the only rank of the group has: an average is a sum, and what is scaled goes in pieces where NCCL is not mended."""
        ((source, size),), ((target, _),) = request.input_places, request.output_places
        is_cut = request.op == ReduceOp.PREMUL_SUM and self.links.nccl.version_number < _FIRST_MENDED
        piece = _MOST_SCALED_RIGHT if is_cut else max(size, 1)
        with reduction_of(self.link, request, is_alone=True) as (dtype, width, op):
            for at in range(0, size, piece):
                self._launch("ncclAllReduce", source + at, target + at, min(piece, size - at) // width, dtype, op)

    def move_all_reduce(self, request: Request) -> None:
        ((source, size),), ((target, _),) = request.input_places, request.output_places
        with reduction_of(self.link, request) as (dtype, width, op):
            self._launch("ncclAllReduce", source, target, size // width, dtype, op)

    def move_reduce(self, request: Request) -> None:
        ((source, size),) = request.input_places
        target = request.output_places[0][0] if self.rank == request.root else source  # which is not written
        with reduction_of(self.link, request) as (dtype, width, op):
            self._launch("ncclReduce", source, target, size // width, dtype, op, request.root)

    def move_all_gather(self, request: Request) -> None:
        ((source, size),), targets = request.input_places, request.output_places
        if _have_one_size(targets):
            with self._together(targets) as whole:
                self._launch("ncclAllGather", source, whole, size, _BYTE)
                if whole != targets[0][0]:
                    for rank, (target, _) in enumerate(targets):
                        self._copy(target, whole + rank * size, size)
            return
        with self._group(has_messages=False):
            for rank, (target, part) in enumerate(targets):
                self._launch("ncclBroadcast", source if rank == self.rank else target, target, part, _BYTE, rank)

    def move_gather(self, request: Request) -> None:
        ((source, size),) = request.input_places
        with self._group(has_messages=True):
            if size:  # what is empty is not sent, as it is not received either
                self._launch("ncclSend", source, size, _BYTE, request.root)
            if self.rank == request.root:
                self._receive_all(request.output_places)

    def move_scatter(self, request: Request) -> None:
        ((target, size),) = request.output_places
        with self._group(has_messages=True):
            if size:
                self._launch("ncclRecv", target, size, _BYTE, request.root)
            if self.rank == request.root:
                self._send_all(request.input_places)

    def move_reduce_scatter(self, request: Request) -> None:
        sources, ((target, size),) = request.input_places, request.output_places
        with reduction_of(self.link, request) as (dtype, width, op):
            if _have_one_size(sources):
                with self._together(sources) as whole:
                    if whole != sources[0][0]:
                        for rank, (source, _) in enumerate(sources):
                            self._copy(whole + rank * size, source, size)
                    self._launch("ncclReduceScatter", whole, target, size // width, dtype, op)
                return
            with self._group(has_messages=False):
                for rank, (source, part) in enumerate(sources):
                    to = target if rank == self.rank else source  # which is not written
                    self._launch("ncclReduce", source, to, part // width, dtype, op, rank)

    def move_all_to_all(self, request: Request) -> None:
        with self._group(has_messages=True):
            self._send_all(request.input_places)
            self._receive_all(request.output_places)

    @contextmanager
    def _together(self, places: _Places) -> Iterator[int]:
        """Give the address of *places* of one size, or of room for all of them where they do not lie one after the other."""
        first, size = places[0]
        if size == 0 or all(at == first + rank * size for rank, (at, _) in enumerate(places)):
            yield first
            return
        with self.cuda.room(size * len(places), self._stream) as room:
            yield room

    def _send_all(self, places: _Places) -> None:
        for rank, (at, size) in enumerate(places):
            if size:
                self._launch("ncclSend", at, size, _BYTE, rank)

    def _receive_all(self, places: _Places) -> None:
        for rank, (at, size) in enumerate(places):
            if size:
                self._launch("ncclRecv", at, size, _BYTE, rank)


class NcclMessages(Messages[DeviceLinks]):
    """See ``Messages``; *links* are those of the group."""

    def put(self, direction: tuple[int, int], message: Message, is_wanted: bool) -> Event:
        links = self.links
        is_sender = links.rank == direction[0]
        ((at, _),) = message.request.input_places if is_sender else message.request.output_places
        made = links.of(direction, partial(between_two, links, direction))
        stream = made.stream.handle
        with links.launching(made), links.cuda.beside_captures():
            message.begin.make_wait(stream)
            has_room = is_wanted or not message.size
            with nullcontext(at) if has_room else links.cuda.room(message.size, stream) as place:
                made.launch("ncclSend" if is_sender else "ncclRecv", place, message.size, _BYTE, int(is_sender), stream)
            return links.end_of(stream, message.request)


def _have_one_size(places: _Places) -> bool:
    return len({size for _, size in places}) == 1
