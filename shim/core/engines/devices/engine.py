"""What the engines for tensors on devices have in common, whatever library carries out their operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from shim.core.engines.base import Request, Tensor
from shim.core.engines.layer import Layer
from shim.core.work import WorkLayer

if TYPE_CHECKING:
    from shim.core.engines.base import Engine
    from shim.core.engines.devices.messages import Messages
    from shim.core.engines.devices.watched_links import WatchedLinks
    from shim.core.work import EngineWork
    from shim.errors import ShimError

REDUCING = ("all_reduce", "reduce", "reduce_scatter")


class DeviceEngine(Layer):
    """Carries out the collectives of one group for tensors on devices, each rank's on one of its own, over *links*.

    *under* serves the same group in host memory: it orders the calls of both kinds, compares them, and knows who is lost. When all
    ranks have agreed, the library's operations are put on a stream.
    """

    reaches_devices: ClassVar[bool] = True

    def __init__(self, under: Engine, links: WatchedLinks, messages: Messages[Any]) -> None:
        super().__init__(under, links.rank, links.size)
        self.links, self._messages = links, messages

    def _ordered(self, request: Request, put: Callable[[Any, Request], Any]) -> DeviceWork:
        """Prepare the operation that *put* puts on a stream of the engine's, behind the event that it is given, and whose end it returns.

        What is on the caller's current stream now goes first.
        """
        begin, ending = self.links.event_before(request), _EndEvent()

        def launch(request: Request) -> None:
            ending.event = put(begin, request)

        return DeviceWork(self.links, request, self.under.arrive(request, launch), ending)

    def barrier(self, now: bool = False, before: str = "") -> EngineWork | None:
        """See ``Engine``. It has no tensors, and no device."""
        return self.under.barrier(now, before)

    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> EngineWork | None:
        return self._messages.send(tensor, peer, tag, now)

    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> EngineWork | int:
        return self._messages.receive(tensor, peer, tag, now)

    def set_timeout(self, seconds: float) -> None:
        """Have a started operation end the group if it has not ended on the device *seconds* after it was put there."""
        self.links.timeout = seconds

    def close(self, why: str = "") -> None:
        """See ``Engine``; *under* is not closed. Waits for what is on the device, unless the group ends because of *why*."""
        self.links.close(why)


class _EndEvent:
    """Where the event behind an operation is put when there is one. (The operation's native part knows this, and not its work: no circle.)"""

    event: Any = None


class DeviceWork(WorkLayer):
    """Waiting for it orders it on the caller's current stream, once it has been put on the engine's.

    *agreement* is the work of the engine in host memory, which ends when the operation is on that stream; *ending* then has its event.
    Operations of a group follow each other on its stream.
    """

    __slots__ = ("_ending", "_links", "_request")

    def __init__(self, links: WatchedLinks, request: Request, agreement: Any, ending: _EndEvent) -> None:
        super().__init__(agreement)
        self._links, self._request, self._ending = links, request, ending

    def wait(self, timeout: float = -1.0) -> None:
        self.under.wait(timeout)
        if self._ending.event is not None:
            self._links.order_after(self._ending.event, self._request)

    def is_completed(self) -> bool:
        if not self.under.is_completed():
            return False
        end = self._ending.event
        return end is None or end.is_cut_off or self._links.is_reached(end)

    def exception(self) -> ShimError | None:
        return self.under.exception() or self._links.what_ended(self._ending.event)
