"""Calls with tensors on a device, carried out through host memory: what ``SHIM_STAGE=host`` asks for, and the backend gloo.

Each call copies what it reads to the host, has the group's engine carry it out there, and copies what it wrote back. That takes two
crossings of the bus, and waits for the device. It works on every device of a framework that can copy, with every engine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from shim.core.tensors.staging import copy_back, host_copy, host_room
from shim.errors import ShimError

if TYPE_CHECKING:
    from shim.core.engines.base import Engine, Splits, Tensor, Tensors
    from shim.core.reduce_ops import ReduceOp
    from shim.core.work import EngineWork


class StagedCalls:
    """The collectives of *under*, an engine of host memory, for tensors on devices of group rank *rank*. *reason* says who wants that.

    Each call's signature is ``Engine``'s.
    """

    name = "through host memory"

    def __init__(self, under: Engine, rank: int, reason: str) -> None:
        self.under = under
        self.rank = rank
        self._reason = reason

    def broadcast(self, tensor: Tensor, root: int, now: bool = False) -> Any:
        call = _Call()
        host = call.read(tensor) if self.rank == root else call.write(tensor)
        return call.made(self.under.broadcast, host, root, now=now)

    def all_reduce(self, output: Tensor, input: Tensor, op: ReduceOp, factor: float, now: bool = False) -> Any:
        call = _Call()
        from_host = call.read(input)
        return call.made(self.under.all_reduce, call.write(output), from_host, op, factor, now=now)

    def reduce(
        self, output: Tensor | None, input: Tensor, op: ReduceOp, root: int, factor: float, now: bool = False
    ) -> Any:
        call = _Call()
        from_host = call.read(input)
        to_host = call.write(output) if self.rank == root else None
        return call.made(self.under.reduce, to_host, from_host, op, root, factor, now=now)

    def all_gather(
        self, outputs: Tensors, input: Tensor, output_splits: Splits, now: bool = False, whole: bool = False
    ) -> Any:
        call = _Call()
        from_host = call.read(input)
        return call.made(self.under.all_gather, call.write(outputs), from_host, output_splits, now=now, whole=whole)

    def gather(
        self, outputs: Tensors | None, input: Tensor, root: int, output_splits: Splits, now: bool = False
    ) -> Any:
        call = _Call()
        from_host = call.read(input)
        to_host = call.write(outputs) if self.rank == root else None
        return call.made(self.under.gather, to_host, from_host, root, output_splits, now=now)

    def scatter(
        self, output: Tensor, inputs: Tensors | None, root: int, input_splits: Splits, now: bool = False
    ) -> Any:
        call = _Call()
        from_host = call.read(inputs) if self.rank == root else None
        return call.made(self.under.scatter, call.write(output), from_host, root, input_splits, now=now)

    def reduce_scatter(
        self,
        output: Tensor,
        inputs: Tensors,
        op: ReduceOp,
        factor: float,
        input_splits: Splits,
        now: bool = False,
        whole: bool = False,
    ) -> Any:
        call = _Call()
        from_host = call.read(inputs)
        to_host = call.write(output)
        return call.made(self.under.reduce_scatter, to_host, from_host, op, factor, input_splits, now=now, whole=whole)

    def all_to_all(
        self,
        outputs: Tensors,
        inputs: Tensors,
        output_splits: Splits,
        input_splits: Splits,
        now: bool = False,
        whole: bool = False,
    ) -> Any:
        call = _Call()
        from_host = call.read(inputs)
        to_host = call.write(outputs)
        return call.made(self.under.all_to_all, to_host, from_host, output_splits, input_splits, now=now, whole=whole)

    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> Any:
        call = _Call()
        return call.made(self.under.send, call.read(tensor), peer, tag, now=now)

    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> Any:
        call = _Call()
        return call.made(self.under.receive, call.write(tensor), peer, tag, now=now)

    def figures(self) -> str:
        """See ``Engine``."""
        return f"as {self._reason}"

    def close(self, why: str = "") -> None:
        """Do nothing: *under* is the group's."""


class _Call:
    """The tensors of one call, and the copies in host memory that stand for them. One that is given twice has one copy."""

    def __init__(self) -> None:
        self._copies: dict[int, Any] = {}  # by the tensor's id
        self._written: list[tuple[Any, Any]] = []  # tensors, and their copies
        self._finishing = threading.Lock()

    def read(self, tensors: Tensors) -> Any:
        """Return a copy in host memory of *tensors*, one or a sequence."""
        return self._each(tensors, host_copy)

    def write(self, tensors: Tensors) -> Any:
        """Return room in host memory for *tensors*, one or a sequence, which are written when the call has ended."""
        staged = self._each(tensors, host_room)
        self._written += [(tensors, staged)] if staged is not None and not isinstance(staged, list) else []
        self._written += zip(tensors, staged, strict=True) if isinstance(staged, list) else []
        return staged

    def _each(self, tensors: Tensors, stage: Callable[[Any], Any]) -> Any:
        if isinstance(tensors, (list, tuple)):
            return [self._one(tensor, stage) for tensor in tensors]
        return self._one(tensors, stage)

    def _one(self, tensor: Any, stage: Callable[[Any], Any]) -> Any:
        if id(tensor) not in self._copies:
            self._copies[id(tensor)] = stage(tensor)
        return self._copies[id(tensor)]

    def made(self, method: Callable[..., Any], *arguments: Any, now: bool, **how: Any) -> Any:
        """Return what *method* of the engine below does, which ends with the outputs on the device."""
        done = method(*arguments, now=now, **how)
        if not now:
            return _StagedWork(done, self.finish)
        self.finish()
        return done

    def finish(self) -> None:
        """Write the outputs on the device, once."""
        with self._finishing:
            while self._written:
                copy_back(*self._written[0])
                del self._written[0]


class _StagedWork:
    """See ``EngineWork``. Whoever first learns that the operation has ended copies its outputs to the device."""

    def __init__(self, under: EngineWork, finish: Callable[[], None]) -> None:
        self.under = under
        self._finish = finish
        self.start, self.source_rank, self.hold_memory = under.start, under.source_rank, under.hold_memory

    def wait(self, timeout: float = -1.0) -> None:
        self.under.wait(timeout)
        self._finish()

    def read_before_others_write(self, others: Sequence[Any]) -> None:
        """Do nothing: what is read has been copied."""

    def is_completed(self) -> bool:
        if not self.under.is_completed():
            return False
        if self.under.exception() is None:
            self._finish()
        return True

    def exception(self) -> ShimError | None:
        return self.under.exception()
