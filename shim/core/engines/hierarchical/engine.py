"""Shared memory within each host, gloo or MPI between hosts, and as little data as can be between these.

Within a host data goes through shared memory. Where all hosts have as many ranks, each rank exchanges a shard with the
ranks of its seat on the other hosts, so that all share the work; elsewhere, and for a few bytes, the hosts' leaders exchange
everything. Much data goes in pieces, so that one is between hosts while another is within them.
Sums are made within hosts first: those of floats may differ in their last bits from an engine that adds in rank order, and
floats of 16 bits are rounded once more.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from shim.core.engines.hierarchical.link import HierarchicalLink, Inside
from shim.core.engines.network.engine import NetworkEngine, room, slices
from shim.core.engines.network.layout import Layout
from shim.core.engines.network.meeting import key_among
from shim.core.reduce_ops import ReduceOp

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.base import Engine
    from shim.core.engines.network.link import Link, Pending
    from shim.core.engines.place import Place

OpenLink = Callable[["Place", str, tuple[int, ...]], "Link"]
"""Connects world ranks of the group at a place, who alone use a key."""

_HANDED_ON = (1 << 20) + 1  # number of a message that a collective is made of, above those of messages
_NOTHING = memoryview(bytearray())
_FEW = 1 << 16  # bytes that all leaders together exchange: of less, each step counts for more than the bytes
_LEAST = 16 << 20  # bytes of a piece: in smaller ones, what the steps cost is more than what is done meanwhile
_MOST = 8


class HierarchicalEngine(NetworkEngine):
    """Carries out a group's collectives within hosts first, by what *open_within_host* opens, and between them by what *open_link* does."""

    name = "hierarchical"
    link: HierarchicalLink

    def __init__(self, place: Place, open_within_host: Callable[[Place], Engine], open_link: OpenLink) -> None:
        layout = self.layout = Layout.of(place.hosts, place.rank)

        def connect(ranks: tuple[int, ...]) -> Link:  # without this object, which holds what keeps it
            if ranks == place.ranks:
                return _connect(place, layout, open_within_host, open_link)
            return open_link(place, key_among(place, ranks), ranks)

        super().__init__(place, connect, layout)

    def give_up_moving(self, why: str) -> None:
        if isinstance(self.link, HierarchicalLink):
            self.link.inside.give_up(why)

    def figures(self) -> str:
        sizes = ", ".join(str(len(members)) for members in self.layout.members)
        return f"shared memory within hosts (of {sizes} ranks), {super().figures()}"

    def move_broadcast(self, request: Request) -> None:
        """Within the root's host, between the leaders, within the other hosts: (H-1)*S bytes between hosts."""
        layout, inside = self.layout, self.link.inside
        data = request.inputs[0] if self.rank == request.root else request.outputs[0]
        source = layout.host_of(request.root)
        across = self.link.across if layout.is_leader else None
        if across is not None and self.rank == request.root:
            sent = across.broadcast(data, source)
            inside.broadcast(data, 0)
            self.wait_for(sent)
            return
        if layout.host == source:
            inside.broadcast(data, layout.here.index(request.root))
        if across is not None:
            self.wait_for(across.broadcast(data, source))
        if layout.host != source:
            inside.broadcast(data, 0)

    def move_all_reduce(self, request: Request) -> None:
        """Reduce-scatter within hosts, each shard across, all-gather within: 2*(H-1)/H*S bytes between hosts, each way, on each host."""
        if not self._adds_by_hosts(request):
            super().move_all_reduce(request)
            return
        mine, result = request.inputs[0], request.outputs[0]
        if self.layout.is_even and len(mine) * self.layout.hosts > _FEW:
            count = count_for(len(mine))
            pieces = zip(slices(mine, count, request.dtype), slices(result, count, request.dtype), strict=True)
            carry_out(self.wait_for, [self._reduced_by_all(request, *piece) for piece in pieces])
        else:
            carry_out(self.wait_for, [self._reduced_by_leaders(request)])

    def _reduced_by_all(self, request: Request, mine: memoryview, result: memoryview) -> Generator[Pending, None, None]:
        inside, dtype = self.link.inside, request.dtype
        shards = slices(result, inside.size, dtype)
        shard = shards[inside.rank]
        yield inside.reduce_scatter(shard, slices(mine, inside.size, dtype), dtype, ReduceOp(request.op))
        yield from self._combined_across(request, shard)
        yield inside.all_gather(shards, shard)

    def _reduced_by_leaders(self, request: Request) -> Generator[Pending, None, None]:
        inside, across, result = self.link.inside, self.link.across, request.outputs[0]
        to = result if self.layout.is_leader else None
        yield inside.reduce(to, request.inputs[0], request.dtype, ReduceOp(request.op), 0)
        if to is not None and across is not None:
            if len(result) * across.size <= _FEW:
                everything = room(len(result) * across.size)
                yield across.all_gather(everything, result)
                request.combine(result, _cut(everything, [len(result)] * across.size), [])
            else:
                yield from self._combined_across(request, result)
        yield inside.broadcast(result, 0)

    def _combined_across(self, request: Request, data: memoryview) -> Generator[Pending, None, None]:
        """Combine the *data* of all hosts, each of them a slice of it, the same on all."""
        across = self.link.across
        if across is not None:
            pieces = slices(data, across.size, request.dtype)
            own = pieces[across.rank]
            parts = self.parts_to_combine(across.size, len(own))
            parts[across.rank] = own
            yield across.all_to_all(parts, pieces)
            request.combine(own, parts, [])
            yield across.all_to_all(pieces, [own] * across.size)

    def move_reduce(self, request: Request) -> None:
        """Reduce within hosts, then at the root's host: (H-1)*S bytes between hosts. The root's leader hands the result on."""
        if not self._adds_by_hosts(request):
            super().move_reduce(request)
            return
        layout, inside, dtype = self.layout, self.link.inside, request.dtype
        sum_here = room(len(request.inputs[0])) if layout.is_leader else None
        self.wait_for(inside.reduce(sum_here, request.inputs[0], dtype, ReduceOp(request.op), 0))
        target = layout.host_of(request.root)
        if sum_here is not None and self.link.across is not None:
            parts = [room(len(sum_here)) if layout.host == target else _NOTHING for _ in range(layout.hosts)]
            sent = [sum_here if host == target else _NOTHING for host in range(layout.hosts)]
            self.wait_for(self.link.across.all_to_all(parts, sent))
            if layout.host == target:
                request.combine(sum_here, parts, [])
        if layout.host != target:
            return
        if self.rank == request.root:
            result = request.outputs[0]
            if sum_here is None:
                self.wait_for(inside.receive(result, 0, _HANDED_ON))
            else:
                result[:] = sum_here
        elif sum_here is not None:
            self.wait_for(inside.send(sum_here, layout.here.index(request.root), _HANDED_ON))

    def move_all_gather(self, request: Request) -> None:
        """Each input across once, then within hosts: (H-1)*S bytes between hosts for each rank's S."""
        outputs = request.outputs
        if self.layout.is_even and sum(map(len, outputs)) > _FEW:
            count = count_for(max(map(len, outputs)) * self.layout.hosts)
            mine = slices(request.inputs[0], count, "uint8")
            pieces = zip(*(slices(output, count, "uint8") for output in outputs), strict=True)
            carry_out(
                self.wait_for, [self._gathered_by_all(one, piece) for one, piece in zip(mine, pieces, strict=True)]
            )
        else:
            carry_out(self.wait_for, [self._gathered_by_leaders(request)])

    def _gathered_by_all(self, mine: memoryview, outputs: Sequence[memoryview]) -> Generator[Pending, None, None]:
        layout, inside = self.layout, self.link.inside

        def within(members: Sequence[int]) -> Pending:
            return inside.all_gather([outputs[rank] for rank in members], outputs[members[inside.rank]])

        outputs[self.rank][:] = mine
        if self.link.across is not None:
            yield self.link.across.all_to_all([outputs[rank] for rank in layout.column], [mine] * layout.hosts)
        yield [within(members) for members in layout.members][-1]

    def _gathered_by_leaders(self, request: Request) -> Generator[Pending, None, None]:
        layout, inside, outputs = self.layout, self.link.inside, request.outputs
        ranks = [rank for members in layout.members for rank in members]
        everything = room(sum(map(len, outputs)))
        parts = dict(zip(ranks, _cut(everything, [len(outputs[rank]) for rank in ranks]), strict=True))
        yield inside.gather([parts[rank] for rank in layout.here] if layout.is_leader else None, request.inputs[0], 0)
        if layout.is_leader and self.link.across is not None:
            blocks = _cut(everything, [sum(len(parts[rank]) for rank in members) for members in layout.members])
            yield self.link.across.all_to_all(blocks, [blocks[layout.host]] * layout.hosts)
        yield inside.broadcast(everything, 0)
        for rank, part in parts.items():
            outputs[rank][:] = part

    def move_reduce_scatter(self, request: Request) -> None:
        """Within hosts, what is for each seat; then across: (H-1)/N*S bytes between hosts for each rank."""
        layout, inside, inputs = self.layout, self.link.inside, request.inputs
        part = len(request.outputs[0])
        if not (layout.is_even and self._adds_by_hosts(request) and all(len(one) == part for one in inputs)):
            super().move_reduce_scatter(request)
            return
        for_seats = [_joined([inputs[host[seat]] for host in layout.members]) for seat in range(inside.size)]
        block = room(part * layout.hosts)
        self.wait_for(inside.reduce_scatter(block, for_seats, request.dtype, ReduceOp(request.op)))
        mine = _cut(block, [part] * layout.hosts)
        result = request.outputs[0]
        if self.link.across is None:
            result[:] = mine[0]
        else:
            parts = self.parts_to_combine(layout.hosts, part)
            self.wait_for(self.link.across.all_to_all(parts, mine))
            request.combine(result, parts, [])

    def _adds_by_hosts(self, request: Request) -> bool:
        """Tell whether hosts' results can be combined: averages only where each is of as many ranks, and no factors twice."""
        return request.op != ReduceOp.PREMUL_SUM and (request.op != ReduceOp.AVG or self.layout.is_even)


def _connect(
    place: Place, layout: Layout, open_within_host: Callable[[Place], Engine], open_link: OpenLink
) -> HierarchicalLink:
    """Connect this rank within its host, across hosts, and with every member."""
    here = tuple(place.ranks[rank] for rank in layout.here)
    inside_place = replace(
        place,
        key=f"{place.key} host {layout.host}",
        name=f"{place.name} on host {layout.host}",
        ranks=here,
        rank=layout.seat,
        world=None,
        owns_control=False,
    )
    with ExitStack() as made:
        inside = Inside(open_within_host(inside_place), layout.seat, len(here))
        made.callback(inside.close)
        every = open_link(place, f"{place.key} every", place.ranks)
        made.callback(every.close, False)
        across = None
        if layout.hosts > 1 and (layout.is_even or layout.is_leader):
            column = tuple(place.ranks[rank] for rank in layout.column)
            across = open_link(place, f"{place.key} across {layout.seat}", column)
        made.pop_all()
    return HierarchicalLink(layout, inside, every, across)


def _cut(block: memoryview, sizes: Sequence[int]) -> list[memoryview]:
    parts = []
    for size in sizes:
        parts.append(block[:size])
        block = block[size:]
    return parts


def _joined(parts: Sequence[memoryview]) -> memoryview:
    return memoryview(bytearray().join(parts))


def count_for(size: int) -> int:
    """Return in how many pieces *size* bytes go."""
    return min(_MOST, max(1, size // _LEAST))


def carry_out(wait_for: Callable[[Pending], None], pieces: Iterable[Generator[Pending, None, None]]) -> None:
    """Carry out the steps of all *pieces*, each step once *wait_for* has returned from the one before it.

    The second step of a piece is under way with the first of the next one, and so on: every rank begins them in the same order.
    """
    waiting = list(pieces)
    under_way: list[tuple[Generator[Pending, None, None], Pending]] = []
    while waiting or under_way:
        begun = []
        for steps, pending in under_way:
            wait_for(pending)
            begun += [(steps, following) for following in [next(steps, None)] if following is not None]
        if waiting:
            steps = waiting.pop(0)
            begun += [(steps, next(steps))]
        under_way = begun
