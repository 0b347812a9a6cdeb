"""What a started operation on a device is to its caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shim.errors import ShimError

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.devices.watched_links import WatchedLinks


class EndEvent:
    """Where the event behind an operation is put when there is one. (The operation's native part knows this, and not its work: no circle.)"""

    event: Any = None


class DeviceWork:
    """See ``EngineWork``. To wait for it orders it on the caller's current stream, once it has been put on the engine's.

    *agreement* is the work of the engine in host memory, which ends when the operation is on that stream; *ending* then has its event.
    """

    def __init__(self, links: WatchedLinks, request: Request, agreement: Any, ending: EndEvent) -> None:
        self.under = agreement
        self._links, self._request, self._ending = links, request, ending

    def start(self) -> None:
        self.under.start()

    def wait(self, timeout: float = -1.0) -> None:
        self.under.wait(timeout)
        if self._ending.event is not None:
            self._links.order_after(self._ending.event, self._request)

    def hold_memory(self) -> None:
        self.under.hold_memory()

    def read_before_others_write(self, others: Sequence[Any]) -> None:
        """Do nothing: operations of a group follow each other on its stream."""

    def is_completed(self) -> bool:
        return bool(self.under.is_completed()) and (
            self._ending.event is None or self._links.is_reached(self._ending.event)
        )

    def exception(self) -> ShimError | None:
        error: ShimError | None = self.under.exception()
        return error

    def source_rank(self) -> int:
        return -1
