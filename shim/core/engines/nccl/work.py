"""What a started operation on a device is to its caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shim.core.engines.nccl.driver import Driver, Event
from shim.errors import ShimError

if TYPE_CHECKING:
    from shim._native import Request

__all__ = ["DeviceWork"]


class DeviceWork:
    """See ``EngineWork``. To wait for it orders it on the caller's current stream, once it has been put on the engine's.

    ``under`` is the agreement on it, which ends when it is on that stream.
    """

    def __init__(self, cuda: Driver, request: Request) -> None:
        self.under: Any = None
        self._cuda = cuda
        self._request = request
        self._end: Event | None = None

    def record(self, stream: Any) -> None:
        """Note that it has ended when what is in *stream* now has."""
        self._end = Event(self._cuda)
        self._end.record(stream)

    def start(self) -> None:
        self.under.start()

    def wait(self, timeout: float = -1.0) -> None:
        self.under.wait(timeout)
        if self._end is not None:
            with self._cuda.on(self._request.device_number):
                self._end.make_wait(self._request.current_stream())

    def hold_memory(self) -> None:
        self.under.hold_memory()

    def read_before_others_write(self, others: Sequence[Any]) -> None:
        """Do nothing: operations of a group follow each other on its stream."""

    def is_completed(self) -> bool:
        if not self.under.is_completed():
            return False
        return self._end is None or self._end.is_reached()

    def exception(self) -> ShimError | None:
        error: ShimError | None = self.under.exception()
        return error

    def source_rank(self) -> int:
        return -1

    def __del__(self) -> None:
        if self._end is not None:
            self._end.close()
