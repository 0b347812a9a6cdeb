"""The link between any two ranks of a group: by shared memory where they share a host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from shim.core.engines.network.layout import Layout
from shim.core.engines.network.link import Link, LinkError, Pending
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors.elements import Elements
from shim.errors import CollectiveTimeoutError, ShimError

if TYPE_CHECKING:
    from shim.core.engines.base import Engine

_NOTHING = memoryview(bytearray())
_SPLITS = None  # every part is as long as the tensor that it goes to


class InsideTransfer:
    """An operation of the ranks of one host that is under way, as a ``Pending``."""

    def __init__(self, work: Any, kept: object) -> None:
        self._work = work
        self._kept = kept
        work.start()

    def wait(self, seconds: float) -> bool:
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


class _All:
    def __init__(self, transfers: Sequence[Pending]) -> None:
        self._transfers = transfers

    def wait(self, seconds: float) -> bool:
        return all(transfer.wait(seconds) for transfer in self._transfers)


def all_of(transfers: Sequence[Pending]) -> Pending:
    """Return what ends when all *transfers* have."""
    return _All(transfers)


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


class HierarchicalLink(Link):
    """Sends what is for ranks of this host by *inside*, and all else, with every header, by *every*, a link of all members.

    *across* connects the ranks of the layout's column, and is None where there is one host, or this rank exchanges nothing for its.
    """

    def __init__(self, layout: Layout, inside: Inside, every: Link, across: Link | None) -> None:
        self.rank, self.size = every.rank, every.size
        self.name = every.name  # type: ignore[misc]  # that of the library
        self.needs_progress = every.needs_progress  # type: ignore[misc]
        self.layout, self.inside, self.across = layout, inside, across
        self._every = every

    def all_gather(self, outputs: memoryview, mine: memoryview) -> Pending:
        return self._every.all_gather(outputs, mine)

    def broadcast(self, data: memoryview, root: int) -> Pending:
        return self._every.broadcast(data, root)

    def all_to_all(self, outputs: Sequence[memoryview], inputs: Sequence[memoryview]) -> Pending:
        here = self.layout.here
        inside = self.inside.all_to_all([outputs[rank] for rank in here], [inputs[rank] for rank in here])
        if self.layout.hosts == 1:
            return inside

        def away(parts: Sequence[memoryview]) -> list[memoryview]:
            return [_NOTHING if rank in here else part for rank, part in enumerate(parts)]

        return all_of([inside, self._every.all_to_all(away(outputs), away(inputs))])

    def reduces(self, dtype: str, op: ReduceOp) -> bool:
        return False

    def all_reduce(self, data: memoryview, dtype: str, op: ReduceOp) -> Pending:
        raise NotImplementedError("the engine reduces within hosts first")

    def send(self, data: memoryview, peer: int, number: int) -> Pending:
        if peer in self.layout.here:
            return self.inside.send(data, self.layout.here.index(peer), number)
        return self._every.send(data, peer, number)

    def receive(self, data: memoryview, peer: int, number: int) -> Pending:
        if peer in self.layout.here:
            return self.inside.receive(data, self.layout.here.index(peer), number)
        return self._every.receive(data, peer, number)

    def send_header(self, header: bytes, peer: int) -> Pending:
        return self._every.send_header(header, peer)

    def take_headers(self, taker: Callable[[int, bytes], None]) -> None:
        self._every.take_headers(taker)

    def progress(self) -> None:
        self._every.progress()

    def close(self, is_clean: bool) -> None:
        self.inside.close()
        for link in (self.across, self._every):
            if link is not None:
                link.close(is_clean)

    def finish(self, seconds: float) -> None:
        for link in (self.across, self._every):
            if link is not None:
                link.finish(seconds)
