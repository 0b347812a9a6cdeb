"""Where a job's time went: per operation its calls, bytes, waiting and moving, and the rank that the others waited for."""

from __future__ import annotations

from dataclasses import dataclass, field

from shim.trace.aligning import Meeting, meetings_of
from shim.trace.calls import Call, Recording


@dataclass
class Operation:
    """All calls of one collective in one group. Times are nanoseconds, of all ranks together."""

    collective: str
    group: str
    calls: int = 0  # of the rank that has made most
    bytes: int = 0  # of all ranks together, in calls that did not fail
    waiting: int = 0
    moving: int = 0
    blamed: dict[int, int] = field(default_factory=dict)  # how long others waited for a rank

    @property
    def slowest(self) -> tuple[int, float] | None:
        """The rank that the others waited for most, and its share of their waiting."""
        if not self.blamed or not self.waiting:
            return None
        rank = max(self.blamed, key=lambda one: self.blamed[one])
        return rank, self.blamed[rank] / self.waiting


@dataclass
class RankTime:
    """What one rank did between the first call of the job and the last. Times are nanoseconds."""

    rank: int
    calls: int = 0
    waiting: int = 0
    moving: int = 0
    awaited: int = 0  # how long others waited for this rank, together


@dataclass
class Summary:
    """The answer of ``shim trace show``."""

    seconds: float
    operations: list[Operation]
    ranks: list[RankTime]
    unfinished: list[tuple[Call, tuple[int, ...]]]  # with the ranks that had not come
    failures: list[Call]
    internal_calls: int

    @property
    def slowest(self) -> RankTime | None:
        """The rank that the others waited for longest."""
        return max(self.ranks, key=lambda one: one.awaited, default=None)


def summarize(recording: Recording, internal: bool = False) -> Summary:
    """Return where the time of *recording* went; what shim's ranks agree on by themselves counts where *internal* is True."""
    last = recording.last
    operations: dict[tuple[str, str], Operation] = {}
    ranks = {rank: RankTime(rank) for rank in recording.ranks}
    unfinished: list[tuple[Call, tuple[int, ...]]] = []
    for meeting in meetings_of(recording):
        unfinished += [(call, meeting.absent) for call in meeting.calls if call.is_open]
        shown = [call for call in meeting.calls if not call.is_refused and (internal or not call.shape.is_internal)]
        for name in dict.fromkeys(_name(call) for call in shown):
            mine = [call for call in shown if _name(call) == name]
            operation = operations.setdefault(
                (name, shown[0].shape.group.name), Operation(name, shown[0].shape.group.name)
            )
            operation.calls += 1
            for call in mine:
                _count(operation, ranks, meeting, call, last)
    return Summary(
        (last - recording.first) / 1e9,
        sorted(operations.values(), key=lambda one: -(one.waiting + one.moving)),
        list(ranks.values()),
        unfinished,
        [call for call in recording.calls if call.failure is not None],
        sum(call.shape.is_internal for call in recording.calls),
    )


def _name(call: Call) -> str:
    if call.shape.is_of_objects:
        return f"{call.shape.collective} of objects"
    return "send and receive" if call.shape.is_message else call.shape.collective


def _count(operation: Operation, ranks: dict[int, RankTime], meeting: Meeting, call: Call, last: int) -> None:
    waiting, moving = meeting.waiting(call, last), meeting.moving(call, last)
    operation.bytes += 0 if call.failure is not None else call.shape.bytes
    operation.waiting += waiting
    operation.moving += moving
    mine = ranks[call.rank]
    mine.calls += 1
    mine.waiting += waiting
    mine.moving += moving
    for rank in meeting.absent if meeting.is_missed_by(call) else (meeting.last.rank,):
        if rank != call.rank:
            operation.blamed[rank] = operation.blamed.get(rank, 0) + waiting
            ranks[rank].awaited += waiting
