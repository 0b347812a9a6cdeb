"""Which calls of the ranks belong together, and how long each waited for the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from shim.core.tracing.layout import State
from shim.trace.calls import Call, Recording


@dataclass(frozen=True)
class Meeting:
    """The k-th collective of a group on its ranks, or a message: what waits for each other. ``absent`` are members without such a call."""

    calls: tuple[Call, ...]
    absent: tuple[int, ...]

    @property
    def last(self) -> Call:
        """The call that the others waited for."""
        return max(self.calls, key=lambda call: call.begin)

    def is_missed_by(self, call: Call) -> bool:
        """Tell whether *call* waits, or waited until it failed, for ranks that have not come."""
        return bool(self.absent) and (call.end is None or call.failure is not None)

    def waiting(self, call: Call, end: int) -> int:
        """Return the nanoseconds that the program of *call*'s rank waited for others to begin; until *end* where it has not ended."""
        since, until = blocked(call, end)
        others = until if self.is_missed_by(call) else self.last.begin
        return max(0, min(until, others) - since)

    def moving(self, call: Call, end: int) -> int:
        """Return the rest of the time that the program of *call*'s rank was in it."""
        since, until = blocked(call, end)
        return until - since - self.waiting(call, end)


def blocked(call: Call, end: int) -> tuple[int, int]:
    """Return from when to when the program was in *call*; of one in the background, that is when it waits for it."""
    since = call.waited if call.in_background else call.begin
    if since is None or call.state == State.PREPARED:
        return call.begin, call.begin
    until = end if call.end is None else call.end
    return min(since, until), until


def meetings_of(recording: Recording) -> Iterator[Meeting]:
    """Yield what waits for each other, internal calls too, in the order in which it began."""
    found = [*_collectives(recording), *_messages(recording)]
    yield from sorted(found, key=lambda one: min(call.begin for call in one.calls))


def _collectives(recording: Recording) -> Iterator[Meeting]:
    groups: dict[tuple[str, int], dict[int, list[Call]]] = defaultdict(dict)
    members: dict[tuple[str, int], tuple[int, ...]] = {}
    for rank in recording.ranks.values():
        for _, group in rank.groups:
            groups[group.identity].setdefault(rank.rank, [])
            members[group.identity] = group.ranks
        for call in rank.calls:
            if not call.shape.is_message and call.state != State.PREPARED:
                groups[call.shape.group.identity][rank.rank].append(call)
    for identity, calls in groups.items():
        for one in calls.values():
            one.sort(key=lambda call: call.begin)  # asynchronous ones count from when they were started
        for k in range(max(map(len, calls.values()))):
            here = tuple(one[k] for one in calls.values() if k < len(one))
            there = {call.rank for call in here}
            yield Meeting(
                here, tuple(rank for rank in members[identity] if rank not in there and rank in recording.ranks)
            )


def _messages(recording: Recording) -> Iterator[Meeting]:
    """Pair each send with the receive that took its message: in order, for each pair of ranks and tag."""
    sends: dict[tuple[object, ...], list[Call]] = defaultdict(list)
    receives: dict[tuple[object, ...], list[Call]] = defaultdict(list)
    for call in recording.calls:
        shape = call.shape
        if not shape.is_message or call.state == State.PREPARED:
            continue
        if shape.collective == "send":
            sends[shape.group.identity, call.rank, shape.peer, shape.tag].append(call)
        else:
            peer = shape.peer if call.source_rank is None else call.source_rank
            receives[shape.group.identity, peer, call.rank, shape.tag].append(call)
    for key in {**sends, **receives}:
        sent, received = sends.get(key, []), receives.get(key, [])
        for k in range(max(len(sent), len(received))):
            here = tuple(calls[k] for calls in (sent, received) if k < len(calls))
            peers = [rank for rank in (key[1], key[2]) if isinstance(rank, int) and rank in recording.ranks]
            yield Meeting(here, tuple(rank for rank in peers if rank not in {call.rank for call in here}))
