"""The link between any two members of a group of several hosts: by shared memory where they share one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from shim.core.engines.hierarchical.inside import Inside
from shim.core.engines.hierarchical.layout import Layout
from shim.core.engines.hierarchical.pieces import all_of
from shim.core.engines.network.carrier import Gather
from shim.core.engines.network.link import Link, Pending
from shim.core.reduce_ops import ReduceOp

_NOTHING = memoryview(bytearray())


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
        """See ``Link``."""
        return self._every.all_gather(outputs, mine)

    def broadcast(self, data: memoryview, root: int) -> Pending:
        """See ``Link``."""
        return self._every.broadcast(data, root)

    def all_to_all(self, outputs: Sequence[memoryview], inputs: Sequence[memoryview]) -> Pending:
        """See ``Link``."""
        here = self.layout.here
        inside = self.inside.all_to_all([outputs[rank] for rank in here], [inputs[rank] for rank in here])
        if self.layout.hosts == 1:
            return inside

        def away(parts: Sequence[memoryview]) -> list[memoryview]:
            return [_NOTHING if rank in here else part for rank, part in enumerate(parts)]

        return all_of([inside, self._every.all_to_all(away(outputs), away(inputs))])

    def reduces(self, dtype: str, op: ReduceOp) -> bool:
        """See ``Link``."""
        return False

    def all_reduce(self, data: memoryview, dtype: str, op: ReduceOp) -> Pending:
        """See ``Link``."""
        raise NotImplementedError("the engine reduces within hosts first")

    def send(self, data: memoryview, peer: int, number: int) -> Pending:
        """See ``Link``."""
        if peer in self.layout.here:
            return self.inside.send(data, self.layout.here.index(peer), number)
        return self._every.send(data, peer, number)

    def receive(self, data: memoryview, peer: int, number: int) -> Pending:
        """See ``Link``."""
        if peer in self.layout.here:
            return self.inside.receive(data, self.layout.here.index(peer), number)
        return self._every.receive(data, peer, number)

    def send_header(self, header: bytes, peer: int) -> Pending:
        """See ``Link``."""
        return self._every.send_header(header, peer)

    def take_headers(self, taker: Callable[[int, bytes], None]) -> None:
        """See ``Link``."""
        self._every.take_headers(taker)

    def progress(self) -> None:
        """See ``Link``."""
        self._every.progress()

    def close(self, is_clean: bool) -> None:
        """See ``Link``."""
        self.inside.close()
        for link in (self.across, self._every):
            if link is not None:
                link.close(is_clean)

    def finish(self, seconds: float) -> None:
        """See ``Link``."""
        for link in (self.across, self._every):
            if link is not None:
                link.finish(seconds)


def gather_by_hosts(link: HierarchicalLink) -> Gather:
    """Return what gathers within each host, then among those who lead them, and tells the hosts."""
    layout, inside = link.layout, link.inside
    widest = max(map(len, layout.members))

    def gather(mine: bytes) -> Generator[Pending, None, list[bytes]]:
        width = len(mine)
        block = memoryview(bytearray(width * widest))
        everything = memoryview(bytearray(len(block) * layout.hosts))
        parts = [block[seat * width : (seat + 1) * width] for seat in range(inside.size)]
        yield inside.gather(parts if layout.is_leader else None, memoryview(bytearray(mine)), 0)
        if layout.hosts == 1:
            everything[:] = block
        elif layout.is_leader:
            assert link.across is not None
            yield link.across.all_gather(everything, block)
        yield inside.broadcast(everything, 0)
        return [bytes(everything[(host * widest + seat) * width :][:width]) for host, seat in _places_by_rank(layout)]

    return gather


def _places_by_rank(layout: Layout) -> list[tuple[int, int]]:
    """Return host and seat of every member, in the order of group ranks."""
    places = {rank: (host, seat) for host, members in enumerate(layout.members) for seat, rank in enumerate(members)}
    return [places[rank] for rank in sorted(places)]
