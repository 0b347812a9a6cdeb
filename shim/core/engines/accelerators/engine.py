"""Torch's tensors on an accelerator by the backend that torch has for it, once the ranks have agreed on the call in host memory.

Each collective is made of the functions that torch's backends have in common, which put operations on the current stream.
Data that is only moved counts as bytes, so that its dtype does not matter. Which functions are called depends on nothing but the sizes,
on which the ranks have agreed. Of gather and scatter, which some backends lack, each is an all_to_all in which most parts are empty.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from shim.core.engines.accelerators.backends import torch_backend
from shim.core.engines.accelerators.links import BackendLinks
from shim.core.engines.accelerators.parts import Parts, Reduction, check_is_torchs, flat, parts_of, write
from shim.core.engines.base import Request, Tensor, check_call
from shim.core.engines.defaults import COLLECTIVE_TAG
from shim.core.engines.devices.engine import REDUCING, DeviceEngine
from shim.core.engines.devices.messages import Message, Messages
from shim.core.reduce_ops import ReduceOp

if TYPE_CHECKING:
    from shim._native import CollectiveName
    from shim.core.engines.base import Engine
    from shim.core.work import EngineWork

_OF_ALL, _UPWARDS, _DOWNWARDS = (COLLECTIVE_TAG + number for number in (1, 2, 3))


class _Call(NamedTuple):
    """What a collective moves by *backend*; only a *reduction* is one."""

    backend: Any
    inputs: Parts
    outputs: Parts
    reduction: Reduction


class AcceleratorEngine(DeviceEngine):
    """Carries out the collectives of one group for torch's tensors on devices that torch calls *device*, as ``torch_backend`` finds it.

    The group's members are the world ranks *ranks*. The backend's operations are put on a stream of the engine's, between events: what is
    on the caller's current stream goes first, and what comes there after the call, or after ``wait()`` where it was started, sees the outputs.
    """

    links: BackendLinks
    _call: _Call  # that is being put on a stream, of which there is one at a time

    def __init__(
        self, under: Engine, rank: int, ranks: Sequence[int], device: str, wanted: str, must_serve: bool
    ) -> None:
        found = torch_backend(device, wanted, must_serve)
        links = BackendLinks(under, rank, ranks, found, device)
        super().__init__(under, links, BackendMessages(under, links))
        self.name = found.name
        self._torch: Any = sys.modules["torch"]

    @staticmethod
    def check_is_there(device: str) -> None:
        """Raise EngineError where torch has no backend for devices that it calls *device*."""
        torch_backend(device)

    def _carry_out(
        self, collective: CollectiveName, move: Callable[[Request], object], now: bool, **call: Any
    ) -> EngineWork | None:
        inputs, outputs = call.get("inputs"), call.get("outputs", call.get("inputs"))
        check_is_torchs(self.name, inputs)
        check_is_torchs(self.name, outputs)
        request = check_call(collective, self.rank, self.size, devices=True, **call)
        reduction = Reduction(request.dtype, ReduceOp(request.op), request.factor, self.size)
        if request.dtype and collective in REDUCING:
            reduction.check(self.name)
        self.links.settle_device(request.device_number)
        given, taken = parts_of(inputs, request.input_places), parts_of(outputs, request.output_places)
        # Where the caller waits at once, its stream comes after the end before the memory can be another's.
        kept = None if now else (given, taken)
        work = self._ordered(request, partial(self._put, move, _Call(None, given, taken, reduction), kept))
        if not now:
            return work
        work.wait()
        return None

    def _put(self, move: Callable[[Request], object], call: _Call, kept: Any, begin: Any, request: Request) -> Any:
        def put(backend: Any) -> None:
            self._call = call._replace(backend=backend)
            try:
                move(request)
            finally:
                del self._call  # which has the tensors

        return self.links.put(partial(self.links.of_all, _OF_ALL), begin, kept, put)

    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> EngineWork | None:
        check_is_torchs(self.name, tensor)
        return super().send(tensor, peer, tag, now)

    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> EngineWork | int:
        check_is_torchs(self.name, tensor)
        return super().receive(tensor, peer, tag, now)

    def figures(self) -> str:
        return "torch's backend for the device"

    def move_broadcast(self, request: Request) -> None:
        (part,) = self._call.inputs.each or self._call.outputs.each
        self._broadcast(part, request.root)

    def move_all_reduce(self, request: Request) -> None:
        (source,), (target,) = self._call.inputs.each, self._call.outputs.each
        self._combined(source, target, lambda part: self._all_reduce(part))

    def move_reduce(self, request: Request) -> None:
        (source,) = self._call.inputs.each
        self._reduce(source, self._call.outputs.each[0] if self.rank == request.root else None, request.root)

    def move_all_gather(self, request: Request) -> None:
        (source,), outputs = self._call.inputs.each, self._call.outputs
        if not outputs.is_even():
            for rank, target in enumerate(outputs.each):
                if rank == self.rank:
                    write(target, source)
                self._broadcast(target, rank)
            return
        whole = source.new_empty(sum(outputs.sizes())) if outputs.whole is None else outputs.whole
        self._call.backend._allgather_base(self._bytes_of(whole), self._bytes_of(source)).wait()
        if outputs.whole is None:
            for target, part in zip(outputs.each, whole.chunk(len(outputs)), strict=True):
                write(target, part)

    def move_gather(self, request: Request) -> None:
        (source,) = self._call.inputs.each
        given = [source if rank == request.root else source[:0] for rank in range(self.size)]
        taken = self._call.outputs.each if self.rank == request.root else [source[:0]] * len(given)
        self._exchange(Parts(given), Parts(taken))

    def move_scatter(self, request: Request) -> None:
        (target,) = self._call.outputs.each
        taken = [target if rank == request.root else target[:0] for rank in range(self.size)]
        given = self._call.inputs.each if self.rank == request.root else [target[:0]] * len(taken)
        self._exchange(Parts(given), Parts(taken))

    def move_reduce_scatter(self, request: Request) -> None:
        inputs, (target,) = self._call.inputs, self._call.outputs.each
        if not inputs.is_even():
            for rank, source in enumerate(inputs.each):
                self._reduce(source, target if rank == self.rank else None, rank)
            return
        reduction = self._call.reduction
        options = _with(self._torch.distributed.ReduceScatterOptions(), reduceOp=reduction.torch_op())
        given = reduction.viewed(reduction.prepared(_joined(inputs)))
        self._call.backend._reduce_scatter_base(reduction.viewed(target), given, options).wait()
        reduction.finish(target)

    def move_all_to_all(self, request: Request) -> None:
        self._exchange(self._call.inputs, self._call.outputs)

    def _broadcast(self, part: Any, root: int) -> None:
        options = _with(self._torch.distributed.BroadcastOptions(), rootRank=root, rootTensor=0)
        self._call.backend.broadcast([self._bytes_of(part)], options).wait()

    def _all_reduce(self, part: Any) -> None:
        options = _with(self._torch.distributed.AllreduceOptions(), reduceOp=self._call.reduction.torch_op())
        self._call.backend.allreduce([part], options).wait()

    def _reduce(self, source: Any, target: Any, root: int) -> None:
        """Combine the *source* of all ranks in *target* on the *root*. The others have none, and their sources are not written."""
        options = _with(
            self._torch.distributed.ReduceOptions(),
            reduceOp=self._call.reduction.torch_op(),
            rootRank=root,
            rootTensor=0,
        )
        room = self._torch.empty_like(source) if target is None else target
        self._combined(source, room, lambda part: self._call.backend.reduce([part], options).wait())

    def _combined(self, source: Any, target: Any, combine: Callable[[Any], object]) -> None:
        """Have *combine*, which works in place, make in *target* of each rank's *source* what the call's op says."""
        write(target, self._call.reduction.prepared(source))
        combine(self._call.reduction.viewed(target))
        self._call.reduction.finish(target)

    def _exchange(self, inputs: Parts, outputs: Parts) -> None:
        given = _joined(inputs)
        taken = given.new_empty(sum(outputs.sizes())) if outputs.whole is None else outputs.whole
        width = given.element_size()
        splits = [[size * width for size in parts.sizes()] for parts in (outputs, inputs)]
        options = self._torch.distributed.AllToAllOptions()
        self._call.backend.alltoall_base(self._bytes_of(taken), self._bytes_of(given), *splits, options).wait()
        if outputs.whole is None:
            for target, part in zip(outputs.each, taken.split(outputs.sizes()), strict=True):
                write(target, part)

    def _bytes_of(self, part: Any) -> Any:
        return part.view(self._torch.uint8)


class BackendMessages(Messages[BackendLinks]):
    """See ``Messages``; *links* are those of the group. Each direction has a backend of two ranks, the first of which sends."""

    def check_form(self, tensor: Any) -> None:
        flat(tensor)

    def put(self, direction: tuple[int, int], message: Message, is_wanted: bool) -> Any:
        byte, is_sender = sys.modules["torch"].uint8, self.links.rank == direction[0]

        def move(backend: Any) -> None:
            if message.size:
                whole = flat(message.tensor)
                data = whole.view(byte) if is_wanted else whole.new_empty(message.size, dtype=byte)
                (backend.send([data], 1, 0) if is_sender else backend.recv([data], 0, 0)).wait()

        tag = _UPWARDS if direction[0] < direction[1] else _DOWNWARDS
        return self.links.put(partial(self.links.of_two, direction, tag), message.begin, message.tensor, move)


def _with(options: Any, **fields: Any) -> Any:
    """Return torch's *options* with what *fields* say."""
    for field, value in fields.items():
        setattr(options, field, value)
    return options


def _joined(parts: Parts) -> Any:
    return sys.modules["torch"].cat(list(parts.each)) if parts.whole is None else parts.whole
