"""How the collectives move their data where hosts have several ranks: as little as can be between hosts.

Within a host data goes through shared memory. Where all hosts have as many ranks, each rank exchanges a shard with the
ranks of its seat on the other hosts, so that all share the work; elsewhere, and for a few bytes, the hosts' leaders exchange
everything. Much data goes in pieces, so that one is between hosts while another is within them.
Sums are made within hosts first: those of floats may differ in their last bits from an engine that adds in rank order, and
floats of 16 bits are rounded once more.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from shim.core.engines.hierarchical.pieces import all_of, carry_out, count_for
from shim.core.engines.network import moves
from shim.core.engines.network.moves import all_to_all, barrier, gather, scatter
from shim.core.reduce_ops import ReduceOp

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.hierarchical.engine import HierarchicalEngine
    from shim.core.engines.network.link import Pending

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]

_NOTHING = memoryview(bytearray())
_FEW = 1 << 16  # bytes that all leaders together exchange: of less, each step counts for more than the bytes


def broadcast(engine: HierarchicalEngine, request: Request) -> None:
    """Within the root's host, between the leaders, within the other hosts: (H-1)*S bytes between hosts."""
    layout, inside = engine.layout, engine.link.inside
    data = request.inputs[0] if engine.rank == request.root else request.outputs[0]
    source = layout.host_of(request.root)
    if layout.host == source:
        engine.wait_for(inside.broadcast(data, layout.here.index(request.root)))
    if layout.is_leader and engine.across is not None:
        engine.wait_for(engine.across.broadcast(data, source))
    if layout.host != source:
        engine.wait_for(inside.broadcast(data, 0))


def all_reduce(engine: HierarchicalEngine, request: Request) -> None:
    """Reduce-scatter within hosts, each shard across, all-gather within: 2*(H-1)/H*S bytes between hosts, each way, on each host."""
    if not _adds_by_hosts(engine, request):
        moves.all_reduce(engine, request)
        return
    mine, result = request.inputs[0], request.outputs[0]
    if engine.layout.is_even and len(mine) * engine.layout.hosts > _FEW:
        count = count_for(len(mine))
        pieces = zip(moves.slices(mine, count, request.dtype), moves.slices(result, count, request.dtype), strict=True)
        carry_out(engine.wait_for, [_reduced_by_all(engine, request, *piece) for piece in pieces])
    else:
        carry_out(engine.wait_for, [_reduced_by_leaders(engine, request)])


def _reduced_by_all(
    engine: HierarchicalEngine, request: Request, mine: memoryview, result: memoryview
) -> Generator[Pending, None, None]:
    inside, dtype = engine.link.inside, request.dtype
    shards = moves.slices(result, inside.size, dtype)
    shard = shards[inside.rank]
    yield inside.reduce_scatter(shard, moves.slices(mine, inside.size, dtype), dtype, ReduceOp(request.op))
    yield from _combined_across(engine, request, shard)
    yield inside.all_gather(shards, shard)


def _reduced_by_leaders(engine: HierarchicalEngine, request: Request) -> Generator[Pending, None, None]:
    inside, across, result = engine.link.inside, engine.across, request.outputs[0]
    to = result if engine.layout.is_leader else None
    yield inside.reduce(to, request.inputs[0], request.dtype, ReduceOp(request.op), 0)
    if to is not None and across is not None:
        if len(result) * across.size <= _FEW:
            everything = moves.room(len(result) * across.size)
            yield across.all_gather(everything, result)
            request.combine(result, _cut(everything, [len(result)] * across.size), [])
        else:
            yield from _combined_across(engine, request, result)
    yield inside.broadcast(result, 0)


def _combined_across(engine: HierarchicalEngine, request: Request, data: memoryview) -> Generator[Pending, None, None]:
    """Combine the *data* of all hosts, each of them a slice of it, the same on all."""
    across = engine.across
    if across is not None:
        pieces = moves.slices(data, across.size, request.dtype)
        own = pieces[across.rank]
        parts = [moves.room(len(own)) for _ in range(across.size)]
        yield across.all_to_all(parts, pieces)
        request.combine(own, parts, [])
        yield across.all_to_all(pieces, [own] * across.size)


def reduce(engine: HierarchicalEngine, request: Request) -> None:
    """Reduce within hosts, then at the root's host: (H-1)*S bytes between hosts. The root's leader hands the result on."""
    if not _adds_by_hosts(engine, request):
        moves.reduce(engine, request)
        return
    layout, inside, dtype = engine.layout, engine.link.inside, request.dtype
    sum_here = moves.room(len(request.inputs[0])) if layout.is_leader else None
    engine.wait_for(inside.reduce(sum_here, request.inputs[0], dtype, ReduceOp(request.op), 0))
    target = layout.host_of(request.root)
    if sum_here is not None and engine.across is not None:
        parts = [moves.room(len(sum_here)) if layout.host == target else _NOTHING for _ in range(layout.hosts)]
        sent = [sum_here if host == target else _NOTHING for host in range(layout.hosts)]
        engine.wait_for(engine.across.all_to_all(parts, sent))
        if layout.host == target:
            request.combine(sum_here, parts, [])
    if layout.host != target:
        return
    if engine.rank == request.root:
        result = request.outputs[0]
        if sum_here is None:
            engine.wait_for(inside.receive(result, 0, moves.HANDED_ON))
        else:
            result[:] = sum_here
    elif sum_here is not None:
        engine.wait_for(inside.send(sum_here, layout.here.index(request.root), moves.HANDED_ON))


def all_gather(engine: HierarchicalEngine, request: Request) -> None:
    """Each input across once, then within hosts: (H-1)*S bytes between hosts for each rank's S."""
    outputs = request.outputs
    if engine.layout.is_even and sum(map(len, outputs)) > _FEW:
        count = count_for(max(map(len, outputs)) * engine.layout.hosts)
        mine = moves.slices(request.inputs[0], count, "uint8")
        pieces = zip(*(moves.slices(output, count, "uint8") for output in outputs), strict=True)
        carry_out(
            engine.wait_for, [_gathered_by_all(engine, one, piece) for one, piece in zip(mine, pieces, strict=True)]
        )
    else:
        carry_out(engine.wait_for, [_gathered_by_leaders(engine, request)])


def _gathered_by_all(
    engine: HierarchicalEngine, mine: memoryview, outputs: Sequence[memoryview]
) -> Generator[Pending, None, None]:
    layout, inside = engine.layout, engine.link.inside

    def within(members: Sequence[int]) -> Pending:
        return inside.all_gather([outputs[rank] for rank in members], outputs[members[inside.rank]])

    outputs[engine.rank][:] = mine
    if engine.across is not None:
        yield engine.across.all_to_all([outputs[rank] for rank in layout.column], [mine] * layout.hosts)
    yield all_of([within(members) for members in layout.members])


def _gathered_by_leaders(engine: HierarchicalEngine, request: Request) -> Generator[Pending, None, None]:
    layout, inside, outputs = engine.layout, engine.link.inside, request.outputs
    ranks = [rank for members in layout.members for rank in members]
    everything = moves.room(sum(map(len, outputs)))
    parts = dict(zip(ranks, _cut(everything, [len(outputs[rank]) for rank in ranks]), strict=True))
    yield inside.gather([parts[rank] for rank in layout.here] if layout.is_leader else None, request.inputs[0], 0)
    if layout.is_leader and engine.across is not None:
        blocks = _cut(everything, [sum(len(parts[rank]) for rank in members) for members in layout.members])
        yield engine.across.all_to_all(blocks, [blocks[layout.host]] * layout.hosts)
    yield inside.broadcast(everything, 0)
    for rank, part in parts.items():
        outputs[rank][:] = part


def reduce_scatter(engine: HierarchicalEngine, request: Request) -> None:
    """Within hosts, what is for each seat; then across: (H-1)/N*S bytes between hosts for each rank."""
    layout, inside, inputs = engine.layout, engine.link.inside, request.inputs
    part = len(request.outputs[0])
    if not (layout.is_even and _adds_by_hosts(engine, request) and all(len(one) == part for one in inputs)):
        moves.reduce_scatter(engine, request)
        return
    for_seats = [_joined([inputs[host[seat]] for host in layout.members]) for seat in range(inside.size)]
    block = moves.room(part * layout.hosts)
    engine.wait_for(inside.reduce_scatter(block, for_seats, request.dtype, ReduceOp(request.op)))
    mine = _cut(block, [part] * layout.hosts)
    result = request.outputs[0]
    if engine.across is None:
        result[:] = mine[0]
    else:
        parts = [moves.room(part) for _ in range(layout.hosts)]
        engine.wait_for(engine.across.all_to_all(parts, mine))
        request.combine(result, parts, [])


def _adds_by_hosts(engine: HierarchicalEngine, request: Request) -> bool:
    """Tell whether hosts' results can be combined: averages only where each is of as many ranks, and no factors twice."""
    return request.op != ReduceOp.PREMUL_SUM and (request.op != ReduceOp.AVG or engine.layout.is_even)


def _cut(block: memoryview, sizes: Sequence[int]) -> list[memoryview]:
    parts = []
    for size in sizes:
        parts.append(block[:size])
        block = block[size:]
    return parts


def _joined(parts: Sequence[memoryview]) -> memoryview:
    return memoryview(bytearray().join(parts))
