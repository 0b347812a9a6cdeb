"""Torch's tensors on an accelerator by the backend that torch has for it, once the ranks have agreed on the call in host memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from shim.core.engines.accelerators import moves
from shim.core.engines.accelerators.arithmetic import Reduction
from shim.core.engines.accelerators.backends import torch_backend
from shim.core.engines.accelerators.links import BackendLinks
from shim.core.engines.accelerators.messages import BackendMessages
from shim.core.engines.accelerators.parts import check_is_torchs, parts_of
from shim.core.engines.base import Request, Tensor, check_call
from shim.core.engines.defaults import COLLECTIVE_TAG
from shim.core.engines.devices.work import DeviceWork, EndEvent
from shim.core.engines.layered import LayeredEngine
from shim.core.reduce_ops import ReduceOp

if TYPE_CHECKING:
    from shim.core.engines.base import Engine
    from shim.core.work import EngineWork

_REDUCING = ("all_reduce", "reduce", "reduce_scatter")
_OF_ALL = COLLECTIVE_TAG + 1


class AcceleratorEngine(LayeredEngine):
    """Carries out the collectives of one group for torch's tensors on devices that torch calls *device*, as ``torch_backend`` finds it.

    The group's members are the world ranks *ranks*.

    *under* serves the same group in host memory: it orders the calls, compares them, and knows who is lost. When all ranks have agreed, the
    backend's operations are put on a stream of the engine's, between events: what is on the caller's current stream goes first, and
    what comes there after the call, or after ``wait()`` where it was started, sees the outputs.
    """

    moves: ClassVar[ModuleType] = moves  # of a Call
    reaches_devices: ClassVar[bool] = True

    def __init__(
        self, under: Engine, rank: int, ranks: Sequence[int], device: str, wanted: str, must_serve: bool
    ) -> None:
        super().__init__(under, rank, len(ranks))
        found = torch_backend(device, wanted, must_serve)
        self.name = found.name
        self.links = BackendLinks(under, rank, ranks, found, device)
        self._messages = BackendMessages(under, self.links)

    @staticmethod
    def check_is_there(device: str) -> None:
        """Raise EngineError where torch has no backend for devices that it calls *device*."""
        torch_backend(device)

    def _carry_out(self, collective: str, now: bool, **call: Any) -> EngineWork | None:
        inputs, outputs = call.get("inputs"), call.get("outputs", call.get("inputs"))
        check_is_torchs(self.name, inputs)
        check_is_torchs(self.name, outputs)
        request = check_call(collective, self.rank, self.size, devices=True, **call)
        reduction = Reduction(request.dtype, ReduceOp(request.op), request.factor, self.size)
        if request.dtype and collective in _REDUCING:
            reduction.check(self.name)
        self.links.settle_device(request.device_number)
        given, taken = parts_of(inputs, request.input_places), parts_of(outputs, request.output_places)

        def move(backend: Any) -> None:
            getattr(self.moves, collective)(moves.Call(backend, self.rank, given, taken, request.root, reduction))

        begin, ending = self.links.event_before(request), EndEvent()
        # Where the caller waits at once, its stream comes after the end before the memory can be another's.
        kept = None if now else (given, taken)
        agreement = self.arrive(request, partial(self._put, begin, kept, move, ending))
        work = DeviceWork(self.links, request, agreement, ending)
        if not now:
            return work
        work.wait()
        return None

    def _put(self, begin: Any, kept: Any, move: Callable[[Any], None], ending: EndEvent, request: Request) -> None:
        del request
        ending.event = self.links.put(partial(self.links.of_all, _OF_ALL), begin, kept, move)

    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> EngineWork | None:
        """See ``Engine``."""
        check_is_torchs(self.name, tensor)
        return self._messages.send(tensor, peer, tag, now)

    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> EngineWork | int:
        """See ``Engine``."""
        check_is_torchs(self.name, tensor)
        return self._messages.receive(tensor, peer, tag, now)

    def barrier(self, now: bool = False, before: str = "") -> EngineWork | None:
        """See ``Engine``. It has no tensors, and no device."""
        return self.under.barrier(now, before)

    def figures(self) -> str:
        """See ``Engine``."""
        return "torch's backend for the device"

    def close(self, why: str = "") -> None:
        """See ``Engine``; *under* is not closed. Waits for what is on the device, unless the group ends because of *why*."""
        self.links.close(why)
