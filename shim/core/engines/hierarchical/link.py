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


class _Over:
    """What has ended when it is returned."""

    def wait(self, seconds: float) -> bool:
        return True


_OVER: Pending = _Over()


class Inside:
    """The shared-memory *engine* of one host's ranks, called with bytes of a dtype: what it does has ended when it returns.

    Raises LinkError where it fails; the ranks of other hosts hear of that by the group's engine.
    """

    def __init__(self, engine: Engine, rank: int, size: int) -> None:
        self._engine = engine
        self.rank, self.size = rank, size

    def broadcast(self, data: memoryview, root: int) -> Pending:
        return _called(self._engine.broadcast, Elements(data, "uint8"), root)

    def all_gather(self, outputs: Sequence[memoryview], mine: memoryview) -> Pending:
        return _called(self._engine.all_gather, _bytes(outputs), Elements(mine, "uint8"), _SPLITS)

    def gather(self, outputs: Sequence[memoryview] | None, mine: memoryview, root: int) -> Pending:
        to = None if outputs is None else _bytes(outputs)
        return _called(self._engine.gather, to, Elements(mine, "uint8"), root, _SPLITS)

    def all_to_all(self, outputs: Sequence[memoryview], inputs: Sequence[memoryview]) -> Pending:
        return _called(self._engine.all_to_all, _bytes(outputs), _bytes(inputs), _SPLITS, _SPLITS)

    def reduce(self, output: memoryview | None, data: memoryview, dtype: str, op: ReduceOp, root: int) -> Pending:
        to = None if output is None else Elements(output, dtype)
        return _called(self._engine.reduce, to, Elements(data, dtype), op, root, 1.0)

    def reduce_scatter(self, output: memoryview, parts: Sequence[memoryview], dtype: str, op: ReduceOp) -> Pending:
        sources = [Elements(part, dtype) for part in parts]
        return _called(self._engine.reduce_scatter, Elements(output, dtype), sources, op, 1.0, _SPLITS)

    def send(self, data: memoryview, peer: int, number: int) -> Pending:
        return InsideMessage(self._engine.send(Elements(data, "uint8"), peer, number))

    def receive(self, data: memoryview, peer: int, number: int) -> Pending:
        return InsideMessage(self._engine.receive(Elements(data, "uint8"), peer, number))

    def give_up(self, why: str) -> None:
        """Have the other ranks of this host wait in it no longer."""
        self._engine.give_up(why)

    def close(self) -> None:
        self._engine.close()


def _bytes(parts: Sequence[memoryview]) -> list[Elements]:
    return [Elements(part, "uint8") for part in parts]


def _called(operation: Callable[..., Any], *arguments: Any) -> Pending:
    try:
        operation(*arguments, True)
    except ShimError as error:
        raise LinkError(str(error)) from None
    return _OVER


class InsideMessage:
    """A message between two ranks of one host that is under way, as a ``Pending``."""

    def __init__(self, work: Any) -> None:
        self._work = work
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

        def away(parts: Sequence[memoryview]) -> list[memoryview]:
            return [_NOTHING if rank in here else part for rank, part in enumerate(parts)]

        across = _OVER if self.layout.hosts == 1 else self._every.all_to_all(away(outputs), away(inputs))
        self.inside.all_to_all([outputs[rank] for rank in here], [inputs[rank] for rank in here])
        return across  # which was under way meanwhile

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
