"""Shared memory within each host, c10d or MPI between hosts."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

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


class HierarchicalEngine(NetworkEngine):
    """Carries out a group's collectives within hosts first, by *inside_of*, an engine for the ranks of one host. See ``moves``."""

    name = "hierarchical"
    moves: ClassVar[ModuleType] = moves
    link: HierarchicalLink

    def __init__(self, place: Place) -> None:
        self.layout = Layout.of(place.hosts, place.rank)
        link = connected(place, partial(_connect, place, self.layout))
        super().__init__(place, link, gather_by_hosts(link))

    @property
    def across(self) -> Link | None:
        """The link to those that this rank exchanges its host's data with."""
        return self.link.across

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
