"""What a started operation on a device is to its caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shim.errors import ShimError

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.nccl.driver import Event
    from shim.core.engines.nccl.engine import NcclEngine

__all__ = ["DeviceWork"]


class DeviceWork:
    """See ``EngineWork``. To wait for it orders it on the caller's current stream, once it has been put on the engine's.

    ``under`` is the agreement on it, which ends when it is on that stream; ``end`` is then behind it.
    """

    def __init__(self, engine: NcclEngine, request: Request) -> None:
        self.under: Any = None
        self.end: Event | None = None
        self._engine, self._request = engine, request

    def start(self) -> None:
        self.under.start()

    def wait(self, timeout: float = -1.0) -> None:
        self.under.wait(timeout)
        if self.end is not None:
            self._engine.order_after(self.end, self._request)

    def hold_memory(self) -> None:
        self.under.hold_memory()

    def read_before_others_write(self, others: Sequence[Any]) -> None:
        """Do nothing: operations of a group follow each other on its stream."""

    def is_completed(self) -> bool:
        if not self.under.is_completed():
            return False
        return self.end is None or self.end.is_reached()

    def exception(self) -> ShimError | None:
        error: ShimError | None = self.under.exception()
        return error

    def source_rank(self) -> int:
        return -1
