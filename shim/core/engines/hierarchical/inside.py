"""The ranks of one host in a group of several, and their operations as transfers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from shim.core.engines.network.link import LinkError
from shim.core.tensors.elements import Elements
from shim.errors import CollectiveTimeoutError, ShimError

if TYPE_CHECKING:
    from shim.core.engines.base import Engine
    from shim.core.reduce_ops import ReduceOp

_SPLITS = None  # every part is as long as the tensor that it goes to


class InsideTransfer:
    """An operation of the ranks of one host that is under way, as a ``Pending``."""

    def __init__(self, work: Any, kept: object) -> None:
        self._work = work
        self._kept = kept
        work.start()

    def wait(self, seconds: float) -> bool:
        """See ``Pending``."""
        try:
            if not self._work.is_completed():
                if seconds <= 0:
                    return False
                # It is this wait's, or else the operation has ended and says it again.
                with suppress(CollectiveTimeoutError):
                    self._work.wait(seconds)
                if not self._work.is_completed():
                    return False
            self._work.wait()
        except ShimError as error:
            raise LinkError(str(error)) from None
        return True


class Inside:
    """The shared-memory *engine* of one host's ranks, called with bytes of a dtype; the others hear of it by the group's engine."""

    def __init__(self, engine: Engine, rank: int, size: int) -> None:
        self._engine = engine
        self.rank, self.size = rank, size

    def broadcast(self, data: memoryview, root: int) -> InsideTransfer:
        tensor = Elements(data, "uint8")
        return InsideTransfer(self._engine.broadcast(tensor, root), tensor)

    def all_gather(self, outputs: Sequence[memoryview], mine: memoryview) -> InsideTransfer:
        to, source = [Elements(part, "uint8") for part in outputs], Elements(mine, "uint8")
        return InsideTransfer(self._engine.all_gather(to, source, _SPLITS), (to, source))

    def gather(self, outputs: Sequence[memoryview] | None, mine: memoryview, root: int) -> InsideTransfer:
        to = None if outputs is None else [Elements(part, "uint8") for part in outputs]
        source = Elements(mine, "uint8")
        return InsideTransfer(self._engine.gather(to, source, root, _SPLITS), (to, source))

    def all_to_all(self, outputs: Sequence[memoryview], inputs: Sequence[memoryview]) -> InsideTransfer:
        to, sources = [Elements(part, "uint8") for part in outputs], [Elements(part, "uint8") for part in inputs]
        return InsideTransfer(self._engine.all_to_all(to, sources, _SPLITS, _SPLITS), (to, sources))

    def reduce(
        self, output: memoryview | None, data: memoryview, dtype: str, op: ReduceOp, root: int
    ) -> InsideTransfer:
        to, source = None if output is None else Elements(output, dtype), Elements(data, dtype)
        return InsideTransfer(self._engine.reduce(to, source, op, root, 1.0), (to, source))

    def reduce_scatter(
        self, output: memoryview, parts: Sequence[memoryview], dtype: str, op: ReduceOp
    ) -> InsideTransfer:
        to, sources = Elements(output, dtype), [Elements(part, dtype) for part in parts]
        return InsideTransfer(self._engine.reduce_scatter(to, sources, op, 1.0, _SPLITS), (to, sources))

    def send(self, data: memoryview, peer: int, number: int) -> InsideTransfer:
        tensor = Elements(data, "uint8")
        return InsideTransfer(self._engine.send(tensor, peer, number), tensor)

    def receive(self, data: memoryview, peer: int, number: int) -> InsideTransfer:
        tensor = Elements(data, "uint8")
        return InsideTransfer(self._engine.receive(tensor, peer, number), tensor)

    def close(self) -> None:
        self._engine.close()
