"""How ranks that share a device pass on data in turns.

In each turn a rank fills half of its pool; the ranks meet in host memory, after which their streams may wait for the others' events;
and it reads what is in all pools. The halves alternate, so that one meeting is enough: who comes to the next one has put on its stream
what it reads in this half.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shim.core.engines.nccl.driver import Driver
from shim.core.engines.nccl.one_device.meeting import Meeting
from shim.core.engines.nccl.one_device.pools import HANDLES, Half, OpenedPool, OwnPool
from shim.errors import EngineError, ShimError

__all__ = ["Turn", "Turns"]

_HAS_POOL, _LACKS_ONE = b"\1", b"\0"
_FOR_AN_ERROR = 1024  # bytes
_FOR_CLOSING = 30.0  # seconds that the others have to close what they have open


class Turn:
    """One turn on *stream*: fill the memory at ``mine``, then ``meet``."""

    def __init__(self, halves: list[Half], meeting: Meeting, stream: Any) -> None:
        self._halves, self._meeting, self._stream = halves, meeting, stream
        self.mine = halves[meeting.rank].at

    def meet(self, said: bytes = b"\0") -> tuple[list[int], list[bytes]]:
        """Return where each rank's data is for what is put on the stream from now on, and what each rank has *said*."""
        self._halves[self._meeting.rank].filled.record(self._stream)
        answers = self._meeting.exchange(said)
        for half in self._halves:
            half.filled.make_wait(self._stream)
        return [half.at for half in self._halves], answers


class Turns:
    """The pools of the ranks that come to *meeting*, on the current device of each, and their turns.

    This rank *lacks* something that it needs, or nothing. Raises EngineError on all ranks where one of them cannot take part.
    """

    def __init__(self, cuda: Driver, meeting: Meeting, lacks: str = "") -> None:
        self._meeting = meeting
        self._number = 0  # of the turn
        self._own: OwnPool | None = None
        self._opened: dict[int, OpenedPool] = {}
        self._is_open_elsewhere = False
        answers = meeting.exchange(self._prepare(cuda, lacks))
        for rank, answer in enumerate(answers):
            if answer.startswith(_LACKS_ONE):
                reason = answer.strip(_LACKS_ONE).decode(errors="replace")
                self.release()
                raise EngineError(f"ranks share a device, and rank {meeting.members[rank]} cannot: {reason}")
        self._is_open_elsewhere = True
        for rank, answer in enumerate(answers):
            if rank != meeting.rank:
                self._opened[rank] = OpenedPool(cuda, answer[1 : 1 + HANDLES])
        pools = [self._opened.get(rank, self._own) for rank in range(len(answers))]
        self._halves = [[pool.halves[half] for pool in pools if pool] for half in range(2)]

    def _prepare(self, cuda: Driver, lacks: str) -> bytes:
        """Make this rank's pool, and return what the others have to know."""
        handles = b""
        if not lacks:
            try:
                self._own = OwnPool(cuda)
                handles = self._own.export()
            except EngineError as error:
                lacks = str(error)
        said = _HAS_POOL + handles if not lacks else _LACKS_ONE + lacks.encode()[: _FOR_AN_ERROR - 1]
        return said.ljust(_FOR_AN_ERROR, b"\0")

    @contextmanager
    def turn(self, stream: Any) -> Iterator[Turn]:
        """Give this rank's next turn, which all ranks have at once."""
        halves = self._halves[self._number % 2]
        for half in halves:
            half.read.make_wait(stream)
        yield Turn(halves, self._meeting, stream)
        halves[self._meeting.rank].read.record(stream)
        self._number += 1

    def end(self) -> None:
        """Close what is the others', and wait until they have done so."""
        self._close_opened()
        try:
            self._meeting.exchange(b"\0", _FOR_CLOSING)
        except ShimError:
            return
        self._is_open_elsewhere = False

    def release(self) -> None:
        """Free this rank's pool. CUDA does not allow that while other processes have it open: then it stays until this one ends."""
        self._close_opened()
        if self._own is not None and (not self._is_open_elsewhere or self._meeting.is_alone()):
            self._own.close()
        self._own = None

    def _close_opened(self) -> None:
        while self._opened:
            self._opened.popitem()[1].close()
