"""What the operations of some ranks on devices go over: NCCL, or what stands in for it where the ranks share one device."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from ctypes import byref, c_int, c_void_p
from typing import Any

from shim.core.engines.nccl.driver import Driver, Stream
from shim.core.engines.nccl.library import Nccl, UniqueId
from shim.errors import EngineError

_ON_HOST = 1  # of a factor: NCCL reads it at once
_NO_ERRORS = (0, 7)  # success, and in progress


class DeviceLink(ABC):
    """Puts operations on streams of the current device, which is the one that its *stream* is for."""

    description: str
    lock: threading.RLock | None  # which has to be held for a launch
    stream: Stream  # for operations that are not on the caller's own

    @abstractmethod
    def check_stream(self, stream: Any) -> None:
        """Raise UnsupportedError where nothing can be launched on *stream*, or behind it."""

    @abstractmethod
    def launch(self, function: str, *arguments: Any) -> None:
        """Put what NCCL's *function* does on a stream. The *arguments* are that function's, but for the communicator; the last one is the stream."""

    @abstractmethod
    def group(self, stream: Any, has_messages: bool) -> AbstractContextManager[object]:
        """Have what is launched within, all on *stream*, carried out as one. It *has messages* on some ranks, or on none."""

    @abstractmethod
    def scaled_sum(self, dtype: int, factor: Any) -> AbstractContextManager[Any]:
        """Give the operation that adds after it has multiplied with *factor*, a buffer with an element of *dtype*."""

    @abstractmethod
    def failure(self) -> str:
        """Return what has failed in the background, if anything."""

    @abstractmethod
    def abort(self) -> None:
        """End what is under way, as a rank is lost."""

    @abstractmethod
    def destroy(self) -> None:
        """End it, when nothing is under way. The ranks wait for each other."""

    def release(self) -> None:
        """Give back what is left of it on this rank, after it was aborted or destroyed and the device has come to its end."""
        self.stream.close()


class NcclLink(DeviceLink):
    """One of NCCL's: rank *rank* among *size* that have the same *identity*.

    A first launch does not return before the other ranks have launched theirs: NCCL connects them in it (groupLaunch of its group.cc,
    since 2.22 for collectives, too). So each link has a lock of its own, and one that waits so is in no other's way.
    """

    def __init__(self, nccl: Nccl, cuda: Driver, identity: bytes | bytearray, size: int, rank: int) -> None:
        # With it, all of NCCL's functions return before they have done their work.
        if os.environ.get("NCCL_COMM_BLOCKING", "1") == "0":
            raise EngineError("NCCL_COMM_BLOCKING is 0, and the engine needs calls that wait\nUnset it on all ranks")
        self.lock = threading.RLock()
        self._asking, self._is_over = threading.Lock(), False
        self._nccl = nccl
        self.description = f"NCCL {nccl.version} of {nccl.path}"
        self._handle = c_void_p()
        nccl.call("ncclCommInitRank", byref(self._handle), size, UniqueId.from_buffer_copy(identity), rank)
        self.stream = Stream(cuda)

    def check_stream(self, stream: Any) -> None:
        """See ``DeviceLink``. What NCCL does can be part of a graph."""

    def launch(self, function: str, *arguments: Any) -> None:
        self._nccl.call(function, *arguments[:-1], self._handle, arguments[-1])

    def group(self, stream: Any, has_messages: bool) -> AbstractContextManager[object]:
        return self._nccl.group()

    @contextmanager
    def scaled_sum(self, dtype: int, factor: Any) -> Iterator[int]:
        made = c_int()
        self._nccl.call("ncclRedOpCreatePreMulSum", byref(made), factor, dtype, _ON_HOST, self._handle)
        try:
            yield made.value
        finally:
            self._nccl.call("ncclRedOpDestroy", made, self._handle)

    def failure(self) -> str:
        with self._asking:
            number = 0 if self._is_over else self._nccl.async_error(self._handle)
        return "" if number in _NO_ERRORS else f"NCCL has failed in the background: {self._nccl.text_of(number)}"

    def abort(self) -> None:
        if self._ends():
            self._nccl.call("ncclCommAbort", self._handle)

    def destroy(self) -> None:
        if self._ends():
            self._nccl.call("ncclCommDestroy", self._handle)

    def _ends(self) -> bool:
        """Have nobody ask the communicator any more, or end it again: what is being destroyed frees what both read. Tell whether this is the first end."""
        with self._asking:
            is_first, self._is_over = not self._is_over, True
        return is_first


def new_identity(nccl: Nccl) -> bytes:
    """Return what the ranks of a new communicator of NCCL's have to know."""
    identity = UniqueId()
    nccl.call("ncclGetUniqueId", byref(identity))
    return bytes(identity)
