"""Shared memory within each host, c10d or MPI between hosts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from shim.core.engines.base import Splits, Tensor, Tensors, check_call
from shim.core.engines.choosing import open_link, open_within_host
from shim.core.engines.hierarchical import moves
from shim.core.engines.hierarchical.inside import Inside
from shim.core.engines.hierarchical.layout import Layout
from shim.core.engines.hierarchical.link import HierarchicalLink, gather_by_hosts
from shim.core.engines.network.connecting import connected
from shim.core.engines.network.engine import NetworkEngine

if TYPE_CHECKING:
    from shim.core.engines.network.link import Link
    from shim.core.engines.place import Place
    from shim.core.reduce_ops import ReduceOp
    from shim.core.work import EngineWork

__all__ = ["HierarchicalEngine"]


class HierarchicalEngine(NetworkEngine):
    """Carries out a group's collectives within hosts first, by *inside_of*, an engine for the ranks of one host. See ``moves``."""

    name = "hierarchical"
    link: HierarchicalLink

    def __init__(self, place: Place) -> None:
        self.layout = Layout.of(place.hosts, place.rank)
        link = connected(place, partial(_connect, place, self.layout))
        super().__init__(place, link, gather_by_hosts(link))

    @property
    def across(self) -> Link | None:
        """The link to those that this rank exchanges its host's data with."""
        return self.link.across

    def broadcast(self, tensor: Tensor, root: int, now: bool = False) -> EngineWork | None:
        """See ``Engine``."""
        request = check_call("broadcast", self.rank, self.size, inputs=tensor, root=root)
        return self.arrive(request, partial(moves.broadcast, self), now)

    def all_reduce(
        self, output: Tensor, input: Tensor, op: ReduceOp, factor: float, now: bool = False
    ) -> EngineWork | None:
        """See ``Engine``."""
        request = check_call("all_reduce", self.rank, self.size, outputs=output, inputs=input, op=op, factor=factor)
        return self.arrive(request, partial(moves.all_reduce, self), now)

    def reduce(
        self, output: Tensor | None, input: Tensor, op: ReduceOp, factor: float, root: int, now: bool = False
    ) -> EngineWork | None:
        """See ``Engine``."""
        request = check_call(
            "reduce", self.rank, self.size, outputs=output, inputs=input, op=op, factor=factor, root=root
        )
        return self.arrive(request, partial(moves.reduce, self), now)

    def all_gather(
        self, outputs: Tensors, input: Tensor, output_splits: Splits, now: bool = False, whole: bool = False
    ) -> EngineWork | None:
        """See ``Engine``."""
        request = check_call(
            "all_gather", self.rank, self.size, outputs=outputs, inputs=input, output_splits=output_splits, whole=whole
        )
        return self.arrive(request, partial(moves.all_gather, self), now)

    def reduce_scatter(
        self,
        output: Tensor,
        inputs: Tensors,
        input_splits: Splits,
        op: ReduceOp,
        factor: float,
        now: bool = False,
        whole: bool = False,
    ) -> EngineWork | None:
        """See ``Engine``."""
        request = check_call(
            "reduce_scatter",
            self.rank,
            self.size,
            outputs=output,
            inputs=inputs,
            input_splits=input_splits,
            op=op,
            factor=factor,
            whole=whole,
        )
        return self.arrive(request, partial(moves.reduce_scatter, self), now)

    def figures(self) -> str:
        """See ``Engine``."""
        sizes = ", ".join(str(len(members)) for members in self.layout.members)
        return f"shared memory within hosts (of {sizes} ranks), {super().figures()}"


def _connect(place: Place, layout: Layout) -> HierarchicalLink:
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
    inside = Inside(open_within_host(inside_place), layout.seat, len(here))
    every = open_link(place, f"{place.key} every", place.ranks)
    across = None
    if layout.hosts > 1 and (layout.is_even or layout.is_leader):
        column = tuple(place.ranks[rank] for rank in layout.column)
        across = open_link(place, f"{place.key} across {layout.seat}", column)
    return HierarchicalLink(layout, inside, every, across)
