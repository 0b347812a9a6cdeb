"""Calls with tensors on a device, carried out through host memory: what ``SHIM_STAGE=host`` asks for, and the backend gloo.

Each call copies what it reads to the host, has the group's engine carry it out there, and copies what it wrote back. That takes two
crossings of the bus, and waits for the device. It works on every device of a framework that can copy, with every engine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shim.core.engines.layer import CallLayer
from shim.core.tensors.staging import copy_back, host_copy, host_room
from shim.core.work import WorkLayer

if TYPE_CHECKING:
    from shim.core.engines.base import Engine, Tensors
    from shim.core.work import EngineWork


class StagedCalls(CallLayer):
    """Carries out by *under*, an engine of host memory, what is for tensors on devices. *reason* says who wants that."""

    name = "through host memory"

    def __init__(self, under: Engine, rank: int, size: int, reason: str) -> None:
        super().__init__(under, rank, size)
        self._reason = reason

    def _pass_on(
        self,
        name: str,
        method: Callable[..., Any],
        writes: Tensors | None,
        reads: Tensors | None,
        tensors: tuple[Any, ...],
        arguments: tuple[Any, ...],
        now: bool,
        *more: Any,
    ) -> Any:
        call = _Call(reads, writes)
        staged = (call.outputs, call.inputs)
        if len(tensors) < 2:
            staged = staged[:1] if writes is not None else staged[1 : 1 + len(tensors)]
        done = method(*staged, *arguments, now, *more)
        if not now:
            return _StagedWork(done, call.finish)
        call.finish()
        return done

    def figures(self) -> str:
        return f"as {self._reason}"

    def close(self, why: str = "") -> None:
        """Do nothing: *under* is the group's."""


class _Call:
    """What one call *reads* and *writes*, each of them one tensor or a sequence, and what stands for that in host memory.

    ``inputs`` are copies, and ``outputs`` have room for what is written when the call has ended. A tensor that is given twice has one copy.
    """

    def __init__(self, reads: Tensors | None, writes: Tensors | None) -> None:
        self._copies: dict[int, Any] = {}  # by the tensor's id
        self._finishing = threading.Lock()
        self.inputs = self._each(reads, host_copy)
        self.outputs = outputs = self._each(writes, host_room)
        # Tensors, and their copies.
        self._written: list[tuple[Any, Any]] = [(writes, outputs)]
        if writes is not None and isinstance(outputs, list):
            self._written = list(zip(writes, outputs, strict=True))

    def _each(self, tensors: Tensors | None, stage: Callable[[Any], Any]) -> Any:
        if isinstance(tensors, (list, tuple)):
            return [self._one(tensor, stage) for tensor in tensors]
        return self._one(tensors, stage)

    def _one(self, tensor: Any, stage: Callable[[Any], Any]) -> Any:
        if id(tensor) not in self._copies:
            self._copies[id(tensor)] = stage(tensor)
        return self._copies[id(tensor)]

    def finish(self) -> None:
        """Write the outputs on the device, once."""
        with self._finishing:
            while self._written:
                copy_back(*self._written[0])
                del self._written[0]


class _StagedWork(WorkLayer):
    """Whoever first learns that the operation has ended copies its outputs to the device. What it reads has been copied."""

    __slots__ = ("_finish",)

    def __init__(self, under: EngineWork, finish: Callable[[], None]) -> None:
        super().__init__(under)
        self._finish = finish

    def wait(self, timeout: float = -1.0) -> None:
        self.under.wait(timeout)
        self._finish()

    def is_completed(self) -> bool:
        if not self.under.is_completed():
            return False
        if self.under.exception() is None:
            self._finish()
        return True
