"""How ranks that share a device pass on data in turns, through memory of the device that their processes have in common.

Each exports a pool of its own; the tensors of users are never exported.

In each turn a rank fills half of its pool, and waits until the device has done so. Then the ranks meet in host memory, and each reads
what is in all pools. The halves alternate, so that one meeting is enough: who comes to the next one waits until its reads of this one
are done. Nothing on the device waits for another process, which may die.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_void_p, sizeof
from typing import TYPE_CHECKING, Any

from shim.core.engines.nccl.driver import Driver, Event, IpcHandle
from shim.errors import EngineError, ShimError

if TYPE_CHECKING:
    from shim.core.engines.base import Engine

HANDLE_BYTES = sizeof(IpcHandle)
_PEER_ACCESS = 1
_READY, _NOT_READY = b"\1", b"\0"
_FOR_AN_ERROR = 1024  # bytes
_WORD = struct.Struct("<Bqq")  # a turn or the end, the number of the turn, what is said in it
_TURN, _END = 1, 2
_FOR_CLOSING = 2.0  # seconds that the others have to close what they have open
_SPIN = 0.001  # seconds of looking at the device without a pause


class HostExchange:
    """Where ranks that share a device wait for each other: in host memory, so that nothing on the device waits for what is not there yet.

    They are the ranks *members* of the group that *under* serves, of which the caller is number *rank*. Nobody else uses *tag* between them."""

    def __init__(self, under: Engine, members: Sequence[int], rank: int, tag: int) -> None:
        self.under, self.members, self.rank, self.tag = under, members, rank, tag

    def exchange(self, mine: bytes, timeout: float = -1.0) -> list[bytes]:
        """Return what each rank gives, which is of one size, when all have come. Raises PeerLostError if one does not, and after *timeout* seconds."""
        given = [bytearray(mine) for _ in self.members]
        others = [rank for rank in range(len(self.members)) if rank != self.rank]
        works: list[Any] = [
            self.under.send(bytearray(mine), self.members[rank], self.tag, False) for rank in others
        ] + [self.under.receive(given[rank], self.members[rank], self.tag, False) for rank in others]
        for work in works:
            work.start()
        deadline = time.monotonic() + timeout
        for work in works:
            work.wait(-1.0 if timeout < 0 else max(0.0, deadline - time.monotonic()))
        return [bytes(one) for one in given]

    def is_alone(self) -> bool:
        """Tell whether the processes of all other ranks have ended."""
        return all(self.under.has_ended(member) for rank, member in enumerate(self.members) if rank != self.rank)


class Turn:
    """This rank's part in one turn: fill the memory at ``mine``, then ``meet``."""

    def __init__(self, turns: Turns, stream: Any) -> None:
        self._turns, self._stream = turns, stream
        self.mine = turns.half_of(turns.rank)

    def meet(self, said: int = 0) -> tuple[list[int], list[int]]:
        """Return where each rank's data is, which may be read now, and the number that each rank has *said*."""
        return self._turns.meet(self._stream, said)


class Turns:
    """The pools, of two halves of *half* bytes, of the ranks that come to *processes*, all on the current device, and their turns.

    This rank *lacks* something that it needs, or nothing. Raises EngineError on all ranks where one of them cannot take part. *check*
    raises what has ended this rank's operations on devices.
    """

    def __init__(
        self, cuda: Driver, processes: HostExchange, half: int, check: Callable[[], None], lacks: str = ""
    ) -> None:
        self._cuda, self._processes, self._half, self._check = cuda, processes, half, check
        self.rank = processes.rank
        self._number = 0  # of the turn
        self._using = threading.Lock()  # the pools, which are not closed meanwhile
        self._filled, self._read = Event(cuda), Event(cuda)
        self._own: OwnPool | None = None
        self._opened: dict[int, OpenedPool] = {}
        self._is_open_elsewhere = False
        self._open_pools(lacks)

    def _open_pools(self, lacks: str) -> None:
        try:
            said = b""
            if not lacks:
                self._own = OwnPool(self._cuda, 2 * self._half)
                said = self._own.export()
        except EngineError as error:
            lacks = str(error)
        handles = self._exchange_ready(said, lacks)
        self._is_open_elsewhere = True
        try:
            for rank, handle in enumerate(handles):
                if rank != self.rank:
                    self._opened[rank] = OpenedPool(self._cuda, handle[:HANDLE_BYTES])
        except EngineError as error:
            lacks = f"the memory of another process cannot be opened: {error}"
        self._exchange_ready(b"", lacks)

    def _exchange_ready(self, mine: bytes, lacks: str) -> list[bytes]:
        """Return what the ranks say, none of which *lacks* anything."""
        word = _NOT_READY + lacks.encode()[: _FOR_AN_ERROR - 1] if lacks else _READY + mine
        answers = self._processes.exchange(word.ljust(_FOR_AN_ERROR, b"\0"))
        for rank, answer in enumerate(answers):
            if answer.startswith(_NOT_READY):
                self.release()
                reason = answer.strip(b"\0").decode(errors="replace")
                raise EngineError(f"ranks share a device, and rank {self._processes.members[rank]} cannot: {reason}")
        return [answer[1:] for answer in answers]

    def half_of(self, rank: int) -> int:
        """Return where *rank*'s half of this turn is."""
        pool = self._own if rank == self.rank else self._opened[rank]
        assert pool is not None
        return pool.at + self._number % 2 * self._half

    @contextmanager
    def turn(self, stream: Any) -> Iterator[Turn]:
        """Give this rank's next turn, with what it copies on *stream*; all ranks have it at once."""
        with self._using:
            self._check()
            yield Turn(self, stream)
            self._read.record(stream)
            self._number += 1

    def meet(self, stream: Any, said: int) -> tuple[list[int], list[int]]:
        """See ``Turn``."""
        self._filled.record(stream)
        word = _WORD.pack(_TURN, self._number, said)
        self._using.release()  # while others are waited for, the group may be closed
        try:
            self._await(self._filled)
            self._await(self._read)  # of the turn before, whose halves are filled in the next one
            answers = [_WORD.unpack(one) for one in self._processes.exchange(word)]
        finally:
            self._using.acquire()
        self._check()
        for rank, (kind, number, _) in enumerate(answers):
            if (kind, number) != (_TURN, self._number):
                gone = f"rank {self._processes.members[rank]} has ended the group, or an operation of it"
                raise EngineError(f"{gone}\nThe group can no longer be used.")
        return [self.half_of(rank) for rank in range(len(answers))], [number for _, _, number in answers]

    def _await(self, event: Event) -> None:
        began = time.monotonic()
        while not event.is_reached():
            self._check()
            time.sleep(0.0 if time.monotonic() - began < _SPIN else 0.00005)

    def end(self) -> None:
        """Close what is the others', and wait until they have done so."""
        with self._using:
            self._close_opened()
        try:
            answers = self._processes.exchange(_WORD.pack(_END, self._number, 0), _FOR_CLOSING)
        except ShimError:
            return
        self._is_open_elsewhere = any(_WORD.unpack(one)[0] != _END for one in answers)

    def release(self) -> None:
        """Free this rank's pool. CUDA does not allow that while other processes have it open: then it stays until this one ends."""
        with self._using:
            self._close_opened()
            if self._own is not None and (not self._is_open_elsewhere or self._processes.is_alone()):
                self._own.close()
            self._own = None

    def _close_opened(self) -> None:
        while self._opened:
            self._opened.popitem()[1].close()


class OwnPool:
    """A pool of *size* bytes of this rank's, on the current device."""

    def __init__(self, cuda: Driver, size: int) -> None:
        self._cuda = cuda
        self._at = c_void_p()
        cuda.call("cuMemAlloc_v2", byref(self._at), size)
        self.at = self._at.value or 0

    def export(self) -> bytes:
        """Return what other processes open it with, in HANDLE_BYTES."""
        handle = IpcHandle()
        self._cuda.call("cuIpcGetMemHandle", byref(handle), self._at)
        return bytes(handle)

    def close(self) -> None:
        """Free it; no other process has it open."""
        self._cuda.call("cuMemFree_v2", self._at)


class OpenedPool:
    """The pool of another process, which has exported it as *handle*."""

    def __init__(self, cuda: Driver, handle: bytes) -> None:
        self._cuda = cuda
        self._at = c_void_p()
        cuda.call("cuIpcOpenMemHandle_v2", byref(self._at), IpcHandle.from_buffer_copy(handle), _PEER_ACCESS)
        self.at = self._at.value or 0

    def close(self) -> None:
        """Let its owner free it."""
        self._cuda.call("cuIpcCloseMemHandle", self._at)
