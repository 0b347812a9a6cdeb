"""Who waits for whom, as the processes of a host tell of their groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shim._native import circle_from
from shim._native import told_circle as _told
from shim.core.reports.inquiries import GroupFacts, ProcessFacts, WaitFacts


@dataclass(frozen=True)
class Wait:
    """A process that waits for others, which have not come there."""

    process: tuple[str, int]  # its host and number
    rank: int  # in the widest of its groups, as a rule the world
    inode: int  # of the group
    facts: WaitFacts
    awaited: frozenset[tuple[str, int]]  # processes


def absent_ranks(group: GroupFacts, processes: Iterable[ProcessFacts]) -> dict[int, tuple[str, int]]:
    """Return the hosts and pids, by group rank, of those of *processes* that have not arrived where *group*'s rank waits.

    Empty where it waits in no collective. Ranks that did not answer are left out, as nobody knows where they are.
    """
    return _awaited(group, processes) if group.waiting is not None and group.waiting.operation > 0 else {}


def circles_of_waits(first: list[ProcessFacts], later: list[ProcessFacts]) -> list[list[Wait]]:
    """Return circles in which processes wait, each for the next one. No process is in two of them.

    *later* was asked when *first* had been answered. Only what both tell counts: a wait that is the same in both was there
    all the time between them, so all waits of a circle were there together.
    """
    waits = sorted(set(_waits_of(first)) & set(_waits_of(later)), key=lambda wait: wait.rank)
    awaited = [[place for place, other in enumerate(waits) if other.process in wait.awaited] for wait in waits]
    circles: list[list[int]] = []
    for start in range(len(waits)):
        circle = circle_from(start, awaited)
        if circle and not any(set(circle) & set(one) for one in circles):
            circles.append(circle)
    return [[waits[place] for place in circle] for circle in circles]


def told_circle(circle: list[Wait]) -> str:
    """Return "rank 0 waits in group 'a' for rank 1, which waits in group 'b' for rank 0: they wait for each other"."""
    return _told([(wait.rank, wait.facts.where, wait.facts.held) for wait in circle])


def _waits_of(processes: list[ProcessFacts]) -> Iterator[Wait]:
    for process in processes:
        for group in process.groups:
            if group.waiting is not None and group.waiting.held:
                awaited = frozenset(_awaited(group, processes).values())
                yield Wait(process.key, process.widest.rank, group.inode, group.waiting, awaited)


def _has_arrived(peer: GroupFacts, waiting: WaitFacts | None) -> bool:
    """Tell whether *peer* has arrived itself, of which the rank that waits has not heard: across hosts that takes until all have."""
    return waiting is not None and 0 < waiting.operation <= peer.operation


def _awaited(group: GroupFacts, processes: Iterable[ProcessFacts]) -> dict[int, tuple[str, int]]:
    ranks = () if group.waiting is None else group.waiting.awaited
    return {
        peer.rank: process.key
        for process in processes
        for peer in process.groups
        if peer.inode == group.inode and peer.rank in ranks and not _has_arrived(peer, group.waiting)
    }
