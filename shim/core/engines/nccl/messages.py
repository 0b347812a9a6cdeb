"""Messages of tensors on devices. The host carries a header, by which sender and receiver find each other; then NCCL carries the data.

The header goes as any message of the group's engine in host memory does, so that tags, and receives from any rank, mean what they mean
there. Each direction between two ranks has a communicator and a stream of its own: data one way does not wait for data the other way.
The messages of one direction go one after the other, in the order in which they were begun, whatever their tags.
"""

from __future__ import annotations

import struct
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shim.core.engines.base import check_call
from shim.core.engines.nccl.driver import Event
from shim.core.engines.network.threads import begin_thread
from shim.errors import CollectiveTimeoutError, MismatchError, ShimError, UnsupportedError

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.nccl.engine import NcclEngine

__all__ = ["Message", "Messages"]

# The message's number and bytes, its dtype, and what its communicator is made of.
_HEADER = struct.Struct("qq16s128s")
_BYTE = 1  # NCCL's uint8


class Messages:
    """The messages of one rank in *engine*'s group."""

    def __init__(self, engine: NcclEngine) -> None:
        self._engine = engine
        self._sending: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)  # by the peer
        self._sent: defaultdict[int, int] = defaultdict(int)
        self._received: defaultdict[int, int] = defaultdict(int)
        self._in_turn = threading.Condition()
        self._identities: dict[int, bytes] = {}  # of the communicators to each peer

    def send(self, tensor: Any, peer: int, tag: int) -> Message:
        """Prepare a send."""
        engine = self._engine
        request = check_call("broadcast", engine.rank, engine.size, inputs=tensor, root=engine.rank, devices=True)
        self._refuse_itself(peer)
        begin = engine.now_on_stream(request)
        return Message(engine, request, lambda: self._carry_send(request, begin, peer, tag))

    def receive(self, tensor: Any, peer: int | None, tag: int) -> Message:
        """Prepare a receive."""
        engine = self._engine
        other = (engine.rank + 1) % engine.size  # than this rank: the tensor is written
        self._refuse_itself(other if peer is None else peer)
        request = check_call("broadcast", engine.rank, engine.size, inputs=tensor, root=other, devices=True)
        begin = engine.now_on_stream(request)
        return Message(engine, request, lambda: self._carry_receive(request, begin, peer, tag))

    def _refuse_itself(self, peer: int) -> None:
        if peer == self._engine.rank:
            raise UnsupportedError("{peer} must be another rank for tensors on a device\nCopy the tensor instead.")

    def _carry_send(self, request: Request, begin: Event, peer: int, tag: int) -> tuple[Event, int]:
        engine = self._engine
        ((at, size),) = request.input_places
        with self._sending[peer]:
            if peer not in self._identities:
                self._identities[peer] = engine.new_identity()
            header = _HEADER.pack(self._sent[peer], size, request.dtype.encode(), self._identities[peer])
            engine.under.send(bytearray(header), peer, tag, True)
            self._sent[peer] += 1
            way = engine.way(request.device_number, engine.rank, peer, self._identities[peer])
            return engine.put_message("ncclSend", request, begin, way, at, size, _BYTE, 1), -1

    def _carry_receive(self, request: Request, begin: Event, peer: int | None, tag: int) -> tuple[Event, int]:
        engine = self._engine
        ((at, room),) = request.output_places
        header = bytearray(_HEADER.size)
        source: Any = engine.under.receive(header, peer, tag, True)
        number, size, dtype, identity = _HEADER.unpack(header)
        with self._in_turn:
            self._in_turn.wait_for(lambda: self._received[source] == number)
            try:
                way = engine.way(request.device_number, source, engine.rank, identity)
                named = dtype.rstrip(b"\0").decode()
                fits = (size, named) == (room, request.dtype)
                # What does not fit is received all the same, so that the sender, who has sent it, does not wait for ever.
                at = at if fits else engine.scratch(request.device_number, size)
                end = engine.put_message("ncclRecv", request, begin, way, at, size, _BYTE, 0)
            finally:
                self._received[source] += 1
                self._in_turn.notify_all()
        if not fits:
            raise MismatchError(
                f"{{tensor}} must be as what rank {source} sent, {size} bytes of {named}, got {room} bytes of {request.dtype}"
            )
        return end, source


class Message:
    """See ``EngineWork``. Started, a thread finds the other rank; waited for, it is ordered on the caller's current stream."""

    def __init__(self, engine: NcclEngine, request: Request, carry_out: Callable[[], tuple[Event, int]]) -> None:
        self._engine, self._request, self._carry_out = engine, request, carry_out
        self._is_begun = False
        self._is_over = threading.Event()
        self._end: Event | None = None
        self._source = -1
        self._error: BaseException | None = None

    def start(self) -> None:
        self._is_begun = True
        begin_thread("shim nccl message", self._run)

    def _run(self) -> None:
        try:
            self._end, self._source = self._carry_out()
        except BaseException as error:
            self._error = error
        self._is_over.set()

    def wait(self, timeout: float = -1.0) -> None:
        if not self._is_begun:
            self._is_begun = True
            self._run()
        elif not self._is_over.wait(None if timeout < 0 else timeout):
            late = CollectiveTimeoutError(f"the other rank has not come to the message within {timeout:g} s")
            late.ranks = ()
            raise late
        if self._error is not None:
            raise self._error
        assert self._end is not None
        self._engine.order_after(self._end, self._request)

    def hold_memory(self) -> None:
        """Do nothing: it holds its tensor."""

    def read_before_others_write(self, others: Any) -> None:
        """Do nothing: messages of one direction follow each other."""

    def is_completed(self) -> bool:
        return self._is_over.is_set() and (self._end is None or self._end.is_reached())

    def exception(self) -> ShimError | None:
        return self._error if isinstance(self._error, ShimError) else None

    def source_rank(self) -> int:
        return self._source
