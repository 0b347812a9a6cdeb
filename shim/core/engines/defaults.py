"""The default collectives: they move their data by messages, once all ranks have agreed on the call.

Messages are bytes, and a send waits for its receive: of two ranks that exchange data, the lower one sends first, and a
rank goes through its peers from 0 on, so that no ranks wait in a circle. Reductions combine the elements of all ranks at
once, in the order of ranks 0 to N-1, with the kernels that every engine has: the result is the same, bit by bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from struct import pack, unpack
from typing import TYPE_CHECKING, Any

from shim.core.reduce_ops import ReduceOp

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.work import EngineWork

COLLECTIVE_TAG = 1 << 32  # no user's tag, which has 32 bits; the three after it are for engines on top of another one

_PIECE = 1 << 20  # bytes of each rank that are combined at once; whole elements of every dtype


class DefaultMoves(ABC):
    """Moves the data of each collective by the messages of the engine whose base it is: ``Engine`` gives it the agreed request."""

    rank: int  # of the caller
    size: int

    @abstractmethod
    def send(self, tensor: Any, peer: int, tag: int, now: bool = False) -> EngineWork | None:
        """Prepare a send; tags have 32 bits, but for COLLECTIVE_TAG and the three after it."""

    @abstractmethod
    def receive(self, tensor: Any, peer: int | None, tag: int, now: bool = False) -> EngineWork | int:
        """Prepare a receive, or carry it out *now* and return who sent; a ``peer`` of None takes the first fitting message of any rank."""

    def move_broadcast(self, request: Request) -> None:
        """The root sends all to everyone: (N-1)*S bytes."""
        if self.rank != request.root:
            _receive(self, request.outputs[0], request.root)
            return
        for peer in _others(self):
            _send(self, request.inputs[0], peer)

    def move_all_reduce(self, request: Request) -> None:
        """Rank 0 receives a piece of every rank, combines them and sends the result to everyone: 2*(N-1)*S bytes."""
        factors = _factors_at(self, request, 0)
        for mine, result in zip(_pieces(request.inputs[0]), _pieces(request.outputs[0]), strict=True):
            if self.rank == 0:
                _combine_at_root(self, request, mine, result, factors)
                for peer in _others(self):
                    _send(self, result, peer)
            else:
                _send(self, mine, 0)
                _receive(self, result, 0)

    def move_reduce(self, request: Request) -> None:
        """The root receives a piece of every rank and combines them: (N-1)*S bytes."""
        factors = _factors_at(self, request, request.root)
        if self.rank != request.root:
            for mine in _pieces(request.inputs[0]):
                _send(self, mine, request.root)
            return
        for mine, result in zip(_pieces(request.inputs[0]), _pieces(request.outputs[0]), strict=True):
            _combine_at_root(self, request, mine, result, factors)

    def move_all_gather(self, request: Request) -> None:
        """Every two ranks exchange their inputs."""
        _exchange(self, request.inputs * self.size, request.outputs)

    def move_gather(self, request: Request) -> None:
        """All send to the root."""
        if self.rank != request.root:
            _send(self, request.inputs[0], request.root)
            return
        outputs = request.outputs
        for peer in _others(self):
            _receive(self, outputs[peer], peer)
        outputs[self.rank][:] = request.inputs[0]

    def move_scatter(self, request: Request) -> None:
        """The root sends each rank its part."""
        if self.rank != request.root:
            _receive(self, request.outputs[0], request.root)
            return
        inputs = request.inputs
        for peer in _others(self):
            _send(self, inputs[peer], peer)
        request.outputs[0][:] = inputs[self.rank]

    def move_reduce_scatter(self, request: Request) -> None:
        """Every two ranks exchange their parts, of which each combines its own; it has room for all of them."""
        output = request.outputs[0]
        parts = _room(self.size, len(output))
        _exchange(self, request.inputs, parts)
        factors = _room(self.size, 8)
        if request.op == ReduceOp.PREMUL_SUM:
            _exchange(self, [memoryview(pack("d", request.factor))] * self.size, factors)
        request.combine(output, parts, [unpack("d", factor)[0] for factor in factors])

    def move_all_to_all(self, request: Request) -> None:
        """Every two ranks exchange their parts for each other."""
        _exchange(self, request.inputs, request.outputs)

    def move_barrier(self, request: Request) -> None:  # noqa: B027  # most have nothing to do
        """The agreement already waits for every rank."""


def _others(engine: DefaultMoves) -> Iterator[int]:
    return (peer for peer in range(engine.size) if peer != engine.rank)


def _room(count: int, each: int) -> list[memoryview]:
    return [memoryview(bytearray(each)) for _ in range(count)]


def _pieces(part: memoryview) -> Iterator[memoryview]:
    return (part[start : start + _PIECE] for start in range(0, len(part), _PIECE))


def _exchange(engine: DefaultMoves, sent: Sequence[memoryview], received: Sequence[memoryview]) -> None:
    """Send part *i* of *sent* to rank *i*, and receive part *i* of *received* from it."""
    for peer in range(engine.size):
        if peer == engine.rank:
            received[peer][:] = sent[peer]
        elif engine.rank < peer:
            _send(engine, sent[peer], peer)
            _receive(engine, received[peer], peer)
        else:
            _receive(engine, received[peer], peer)
            _send(engine, sent[peer], peer)


def _factors_at(engine: DefaultMoves, request: Request, root: int) -> list[float]:
    """Return the ranks' factors on *root*, where the op has any."""
    if request.op != ReduceOp.PREMUL_SUM:
        return []
    mine = memoryview(pack("d", request.factor))
    if engine.rank != root:
        _send(engine, mine, root)
        return []
    factors = _room(engine.size, 8)
    factors[root] = mine
    for peer in _others(engine):
        _receive(engine, factors[peer], peer)
    return [unpack("d", factor)[0] for factor in factors]


def _combine_at_root(
    engine: DefaultMoves, request: Request, mine: memoryview, result: memoryview, factors: list[float]
) -> None:
    parts = _room(engine.size, len(mine))
    parts[engine.rank] = mine
    for peer in _others(engine):
        _receive(engine, parts[peer], peer)
    request.combine(result, parts, factors)


def _send(engine: DefaultMoves, part: memoryview, peer: int) -> None:
    if len(part) > 0:
        engine.send(part, peer, COLLECTIVE_TAG, True)


def _receive(engine: DefaultMoves, part: memoryview, peer: int) -> None:
    if len(part) > 0:
        engine.receive(part, peer, COLLECTIVE_TAG, True)
