"""NCCL's operations for ranks that share one device, made of copies and of one kernel."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from shim._native import dtype_bytes
from shim.core.engines.nccl.device_link import DeviceLink
from shim.core.engines.nccl.driver import Driver, Stream
from shim.core.engines.nccl.kernels import MOST_RANKS, SCALED, Kernels
from shim.core.engines.nccl.library import DTYPES
from shim.core.engines.nccl.pool_turns import HostExchange, Turns
from shim.errors import EngineError, UnsupportedError

_SUM = 0
_BFLOAT16 = 9
_BYTES = {number: dtype_bytes(name) for name, number in DTYPES.items()}  # of an element
_FACTORS = {6: "e", 7: "f", 8: "d", _BFLOAT16: "H"}


class _Scaled(NamedTuple):
    """The operation that adds what each rank has multiplied with its *factor*."""

    factor: float


class _Message(NamedTuple):
    """What goes to the rank *peer*, or comes from there."""

    at: int
    size: int
    peer: int


class OneDeviceLink(DeviceLink):
    """The ranks that come to *processes*, all on the current device, whose number here is *number*. See ``DeviceLink``, and ``Turns`` for *check* and *half*."""

    description = "whose ranks share a device"
    lock = None  # a turn has one, which is free while the ranks wait for each other

    def __init__(
        self, cuda: Driver, number: int, processes: HostExchange, check: Callable[[], None], half: int
    ) -> None:
        self._cuda, self._half = cuda, half
        self.rank, self.size = processes.rank, len(processes.members)
        lacks = f"there are {self.size} ranks, and {MOST_RANKS} at most" if self.size > MOST_RANKS else ""
        try:
            self._kernels = Kernels(cuda, number)
        except EngineError as error:
            lacks = str(error)
        self._turns = Turns(cuda, processes, half, check, lacks)
        self.stream = Stream(cuda)
        self._messages: tuple[list[_Message], list[_Message]] | None = None  # of a group: those sent, those received

    def check_stream(self, stream: Any) -> None:
        if self._cuda.is_capturing(stream):
            raise UnsupportedError("operations of ranks that share a device cannot be captured in a CUDA graph")

    def launch(self, function: str, *arguments: Any) -> None:
        self.check_stream(arguments[-1])  # in a group's first operation nobody has asked before
        _OPERATIONS[function](self, *arguments)

    @contextmanager
    def group(self, stream: Any, has_messages: bool) -> Iterator[None]:
        """See ``DeviceLink``. All ranks exchange the messages in the end: some may have none."""
        if not has_messages:
            yield
            return
        self._messages = [], []
        try:
            yield
            self._exchange(*self._messages, stream)
        finally:
            self._messages = None

    @contextmanager
    def scaled_sum(self, dtype: int, factor: Any) -> Iterator[_Scaled]:
        (value,) = struct.unpack(_FACTORS[dtype], factor.raw)
        if dtype == _BFLOAT16:
            (value,) = struct.unpack("f", struct.pack("I", value << 16))
        yield _Scaled(value)

    def failure(self) -> str:
        return ""

    def abort(self) -> None:
        """See ``DeviceLink``. There is nothing to end: on the device nothing waits for a rank that has not come."""

    def destroy(self) -> None:
        self._turns.end()

    def release(self) -> None:
        self._turns.release()
        super().release()

    def _copy(self, target: int, source: int, size: int, stream: Any) -> None:
        if size and target != source:
            self._cuda.call("cuMemcpyDtoDAsync_v2", target, source, size, stream)

    def _give(self, pool: int, source: int, count: int, dtype: int, op: Any, stream: Any) -> None:
        """Copy elements that are to be reduced into this rank's pool, multiplied if *op* says so."""
        if isinstance(op, _Scaled):
            self._kernels.combine(pool, [source], count, dtype, SCALED, stream, op.factor)
        else:
            self._copy(pool, source, count * _BYTES[dtype], stream)

    def _take(self, target: int, pools: Sequence[int], count: int, dtype: int, op: Any, stream: Any) -> None:
        """Reduce the elements at *pools*."""
        self._kernels.combine(target, pools, count, dtype, _SUM if isinstance(op, _Scaled) else op, stream)

    def _all_reduce(self, source: int, target: int, count: int, dtype: int, op: Any, stream: Any) -> None:
        self._reduce(source, target, count, dtype, op, self.rank, stream)

    def _reduce(self, source: int, target: int, count: int, dtype: int, op: Any, root: int, stream: Any) -> None:
        width = _BYTES[dtype]
        for first, part in _pieces(count, self._half // width):
            at = first * width
            with self._turns.turn(stream) as turn:
                self._give(turn.mine, source + at, part, dtype, op, stream)
                pools, _ = turn.meet()
                if self.rank == root:
                    self._take(target + at, pools, part, dtype, op, stream)

    def _reduce_scatter(self, source: int, target: int, count: int, dtype: int, op: Any, stream: Any) -> None:
        width = _BYTES[dtype]
        for first, part in _pieces(count, self._half // width // self.size):
            with self._turns.turn(stream) as turn:
                for rank in range(self.size):
                    given = source + (rank * count + first) * width
                    self._give(turn.mine + rank * part * width, given, part, dtype, op, stream)
                pools, _ = turn.meet()
                mine = [pool + self.rank * part * width for pool in pools]
                self._take(target + first * width, mine, part, dtype, op, stream)

    def _broadcast(self, source: int, target: int, count: int, dtype: int, root: int, stream: Any) -> None:
        for at, part in _pieces(count * _BYTES[dtype], self._half):
            with self._turns.turn(stream) as turn:
                if self.rank == root:
                    self._copy(turn.mine, source + at, part, stream)
                    self._copy(target + at, source + at, part, stream)
                pools, _ = turn.meet()
                if self.rank != root:
                    self._copy(target + at, pools[root], part, stream)

    def _all_gather(self, source: int, target: int, count: int, dtype: int, stream: Any) -> None:
        size = count * _BYTES[dtype]
        for at, part in _pieces(size, self._half):
            with self._turns.turn(stream) as turn:
                self._copy(turn.mine, source + at, part, stream)
                pools, _ = turn.meet()
                for rank, pool in enumerate(pools):
                    self._copy(target + rank * size + at, pool, part, stream)

    def _send(self, at: int, count: int, dtype: int, peer: int, stream: Any) -> None:
        message = _Message(at, count * _BYTES[dtype], peer)
        if self._messages is None:
            self._exchange([message], [], stream)
        else:
            self._messages[0].append(message)

    def _receive(self, at: int, count: int, dtype: int, peer: int, stream: Any) -> None:
        message = _Message(at, count * _BYTES[dtype], peer)
        if self._messages is None:
            self._exchange([], [message], stream)
        else:
            self._messages[1].append(message)

    def _exchange(self, sends: Sequence[_Message], receives: Sequence[_Message], stream: Any) -> None:
        """Pass on messages, one at most from each rank to each, through a room of its own in the sender's pool."""
        room, at = self._half // self.size // 8 * 8, 0
        largest = max((message.size for message in sends), default=0)
        while at == 0 or at < largest:
            with self._turns.turn(stream) as turn:
                for message in sends:
                    part = max(0, min(room, message.size - at))
                    self._copy(turn.mine + message.peer * room, message.at + at, part, stream)
                pools, said = turn.meet(largest)
                largest = max(said)
                for message in receives:
                    part = max(0, min(room, message.size - at))
                    self._copy(message.at + at, pools[message.peer] + self.rank * room, part, stream)
            at += room


_OPERATIONS: dict[str, Callable[..., None]] = {
    "ncclAllReduce": OneDeviceLink._all_reduce,
    "ncclReduce": OneDeviceLink._reduce,
    "ncclReduceScatter": OneDeviceLink._reduce_scatter,
    "ncclBroadcast": OneDeviceLink._broadcast,
    "ncclAllGather": OneDeviceLink._all_gather,
    "ncclSend": OneDeviceLink._send,
    "ncclRecv": OneDeviceLink._receive,
}


def _pieces(whole: int, most: int) -> Iterator[tuple[int, int]]:
    """Cut *whole* into pieces of *most*: where each begins, and how long it is."""
    return ((first, min(most, whole - first)) for first in range(0, whole, most))
