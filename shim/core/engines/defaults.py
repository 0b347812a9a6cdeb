"""The default collectives: they move their data by messages, once all ranks have agreed on the call.

Messages are bytes, and a send waits for its receive: of two ranks that exchange data, the lower one sends first, and a
rank goes through its peers from 0 on, so that no ranks wait in a circle. Reductions combine the elements of all ranks at
once, in the order of ranks 0 to N-1, with the kernels that every engine has: the result is the same, bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import pack, unpack
from typing import TYPE_CHECKING

from shim.core.reduce_ops import ReduceOp

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.base import Engine

COLLECTIVE_TAG = 1 << 32  # no user's tag, which has 32 bits; the three after it are for engines on top of another one

_PIECE = 1 << 20  # bytes of each rank that are combined at once; whole elements of every dtype


def broadcast(engine: Engine, request: Request) -> None:
    """The root sends all to everyone: (N-1)*S bytes."""
    if engine.rank != request.root:
        _receive(engine, request.outputs[0], request.root)
        return
    for peer in _others(engine):
        _send(engine, request.inputs[0], peer)


def all_reduce(engine: Engine, request: Request) -> None:
    """Rank 0 receives a piece of every rank, combines them and sends the result to everyone: 2*(N-1)*S bytes."""
    factors = _factors_at(engine, request, 0)
    for mine, result in zip(_pieces(request.inputs[0]), _pieces(request.outputs[0]), strict=True):
        if engine.rank == 0:
            _combine_at_root(engine, request, mine, result, factors)
            for peer in _others(engine):
                _send(engine, result, peer)
        else:
            _send(engine, mine, 0)
            _receive(engine, result, 0)


def reduce(engine: Engine, request: Request) -> None:
    """The root receives a piece of every rank and combines them: (N-1)*S bytes."""
    factors = _factors_at(engine, request, request.root)
    if engine.rank != request.root:
        for mine in _pieces(request.inputs[0]):
            _send(engine, mine, request.root)
        return
    for mine, result in zip(_pieces(request.inputs[0]), _pieces(request.outputs[0]), strict=True):
        _combine_at_root(engine, request, mine, result, factors)


def all_gather(engine: Engine, request: Request) -> None:
    """Every two ranks exchange their inputs."""
    _exchange(engine, request.inputs * engine.size, request.outputs)


def gather(engine: Engine, request: Request) -> None:
    """All send to the root."""
    if engine.rank != request.root:
        _send(engine, request.inputs[0], request.root)
        return
    outputs = request.outputs
    for peer in _others(engine):
        _receive(engine, outputs[peer], peer)
    outputs[engine.rank][:] = request.inputs[0]


def scatter(engine: Engine, request: Request) -> None:
    """The root sends each rank its part."""
    if engine.rank != request.root:
        _receive(engine, request.outputs[0], request.root)
        return
    inputs = request.inputs
    for peer in _others(engine):
        _send(engine, inputs[peer], peer)
    request.outputs[0][:] = inputs[engine.rank]


def reduce_scatter(engine: Engine, request: Request) -> None:
    """Every two ranks exchange their parts, of which each combines its own; it has room for all of them."""
    output = request.outputs[0]
    parts = _room(engine.size, len(output))
    _exchange(engine, request.inputs, parts)
    factors = _room(engine.size, 8)
    if request.op == ReduceOp.PREMUL_SUM:
        _exchange(engine, [memoryview(pack("d", request.factor))] * engine.size, factors)
    request.combine(output, parts, [unpack("d", factor)[0] for factor in factors])


def all_to_all(engine: Engine, request: Request) -> None:
    """Every two ranks exchange their parts for each other."""
    _exchange(engine, request.inputs, request.outputs)


def barrier(engine: Engine, request: Request) -> None:
    """The agreement already waits for every rank."""


def _others(engine: Engine) -> Iterator[int]:
    return (peer for peer in range(engine.size) if peer != engine.rank)


def _room(count: int, each: int) -> list[memoryview]:
    return [memoryview(bytearray(each)) for _ in range(count)]


def _pieces(part: memoryview) -> Iterator[memoryview]:
    return (part[start : start + _PIECE] for start in range(0, len(part), _PIECE))


def _exchange(engine: Engine, sent: Sequence[memoryview], received: Sequence[memoryview]) -> None:
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


def _factors_at(engine: Engine, request: Request, root: int) -> list[float]:
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
    engine: Engine, request: Request, mine: memoryview, result: memoryview, factors: list[float]
) -> None:
    parts = _room(engine.size, len(mine))
    parts[engine.rank] = mine
    for peer in _others(engine):
        _receive(engine, parts[peer], peer)
    request.combine(result, parts, factors)


def _send(engine: Engine, part: memoryview, peer: int) -> None:
    if len(part) > 0:
        engine.send(part, peer, COLLECTIVE_TAG, True)


def _receive(engine: Engine, part: memoryview, peer: int) -> None:
    if len(part) > 0:
        engine.receive(part, peer, COLLECTIVE_TAG, True)
