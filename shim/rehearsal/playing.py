"""Plays what all ranks called as an engine would carry it out: who waits for whom, where calls differ, and where nobody can go on.

Each thread of a rank goes on by itself. Collectives of a group are its members' in their order, and end when all have come. A message is
matched by its ranks and tag; a send of more bytes than go at once waits for its receive.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shim.rehearsal.signatures import difference
from shim.trace.calls import Call, Group, Recording

AT_ONCE = 983  # bytes of a message that its sender does not wait with, as between hosts

Step = tuple[Call, bool]  # a call that begins, or a wait for one that has begun (True)
Key = tuple[object, ...]
Thread = tuple[int, int]  # a rank, and which of its threads, whose calls follow each other


@dataclass
class Disagreement:
    """The *calls* of a group's members, by world rank, that differ for the first time in that group: its *number*-th, from 1 on."""

    group: Group
    number: int
    calls: dict[int, Call]
    what: str


@dataclass
class Stuck:
    """A rank that cannot go on: it is in *call*, and waits for *missing*, world ranks; *ended* are those of them whose programs are over."""

    rank: int
    call: Call
    missing: Sequence[int]
    ended: Sequence[int]


@dataclass
class HalfMade:
    """A group that its members *made*, world ranks, have created, and its members *missing* have not."""

    group: Group
    made: Sequence[int]
    missing: Sequence[int]


class Times(NamedTuple):
    """When a call begins, when its program waits for it, and when it ends, in seconds; what has not ended ends with its begin."""

    begin: float
    waited: float | None
    end: float


@dataclass
class Played:
    """What came of all. *lost* are messages that nobody receives, or asks for."""

    half_made: list[HalfMade] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)
    stuck: list[Stuck] = field(default_factory=list)
    lost: list[Call] = field(default_factory=list)
    times: dict[tuple[int, int], Times] = field(default_factory=dict)  # of calls, by rank and index

    @property
    def is_right(self) -> bool:
        return not (self.half_made or self.disagreements or self.stuck or self.lost)


Cost = Callable[[Call], float]  # seconds that a call takes, once all have come


def play(recording: Recording, ran: Collection[int], cost: Cost = lambda call: 0.0) -> Played:
    """Play what the ranks of *recording* called, until all are at the end, or no one can go on, with calls that take as long as *cost* says.

    Of the ranks that *ran*, those without a recording have called nothing.
    """
    return _Play(recording, ran, cost).result()


class _Round:
    """One collective of a group: who has come, with which calls."""

    __slots__ = ("begin", "calls")

    def __init__(self) -> None:
        self.calls: dict[int, Call] = {}
        self.begin = 0.0  # when the last of those who have come did


class _Play:
    def __init__(self, recording: Recording, ran: Collection[int], cost: Cost) -> None:
        self._recording, self._cost = recording, cost
        self._clocks: dict[Thread, float] = defaultdict(float)
        self._free: dict[Key, float] = defaultdict(float)  # when the last operation of a group ends
        self._known = frozenset(ran)
        self._steps: dict[Thread, deque[Step]] = {}  # what is left of them
        self._numbers: dict[tuple[int, int], int] = {}  # of collectives, by rank and index, among those of their group
        for rank, one in recording.ranks.items():
            come: Counter[Key] = Counter()
            for call in one.calls:
                if not (call.is_refused or call.shape.is_message):
                    key = _key_of(call.shape.group)
                    self._numbers[rank, call.index] = come[key]
                    come[key] += 1
            for thread in dict.fromkeys(call.thread for call in one.calls):
                self._steps[rank, thread] = deque(steps_of([call for call in one.calls if call.thread == thread]))
        self._played = Played()
        self._rounds: dict[Key, list[_Round]] = defaultdict(list)  # of each group
        self._differ_in_messages: set[Key] = set()  # of which the first one is told
        self._differ: set[Key] = set()  # groups whose calls have differed: nobody waits in them any more
        self._over: dict[tuple[int, int], float] = {}  # when calls, by rank and index, have ended
        self._waited: dict[tuple[int, int], float] = {}
        # By group, sender, receiver and tag: sends without a receive, and receives without a send, whose sender may be None.
        self._offers: dict[Key, deque[Call]] = defaultdict(deque)
        self._wanted: dict[Key, deque[Call]] = defaultdict(deque)
        self._round_of: dict[tuple[int, int], tuple[Group, _Round]] = {}
        self._begun: dict[tuple[int, int], float] = {}
        self._sleepers: dict[Key, list[Thread]] = defaultdict(list)  # those that wait for what has this key

    def result(self) -> Played:
        self._played.half_made = half_made(self._recording)
        awake = deque(sorted(self._steps))
        while awake:
            awake.extend(self._advance(awake.popleft()))
        for thread, steps in sorted(self._steps.items()):
            if steps:
                self._played.stuck.append(self._stuck(thread[0], steps[0][0]))
        self._played.stuck += self._never_complete()
        self._played.times = {
            name: Times(begin, self._waited.get(name), self._over.get(name, begin))
            for name, begin in self._begun.items()
        }
        if not self._played.stuck:
            left = (*self._offers.values(), *self._wanted.values())
            self._played.lost = [call for calls in left for call in calls if not self._unknown_members(call)]
        return self._played

    def _never_complete(self) -> Iterator[Stuck]:
        """Tell the calls that were started, and that some member never comes to, of ranks that do not wait for them, as DDP's do not."""
        told = {(one.rank, one.call.index) for one in self._played.stuck}
        for key, rounds in self._rounds.items():
            for here in rounds if key not in self._differ else ():
                for rank, call in here.calls.items():
                    if (rank, call.index) not in self._over and (rank, call.index) not in told:
                        yield self._stuck(rank, call)

    def _advance(self, thread: Thread) -> list[Thread]:
        """Take steps of *thread* as far as it gets. Return those that can go on because of them."""
        woken: list[Thread] = []
        rank, steps = thread[0], self._steps[thread]
        while steps:
            call, is_wait = steps[0]
            name = (rank, call.index)
            if not is_wait and name not in self._begun:
                self._begun[name] = self._clocks[thread]
                woken += self._begin(rank, call)
            if is_wait or not call.in_background:
                if name not in self._over:
                    self._sleepers[name].append(thread)
                    break
                if is_wait:
                    self._waited[name] = self._clocks[thread]
                self._clocks[thread] = max(self._clocks[thread], self._over[name])
            steps.popleft()
        return woken

    def _begin(self, rank: int, call: Call) -> list[Thread]:
        if call.is_refused or len(call.shape.group.ranks) == 1:
            return self._end(rank, call)
        return self._offer(rank, call) if call.shape.is_message else self._arrive(rank, call)

    def _arrive(self, rank: int, call: Call) -> list[Thread]:
        group = call.shape.group
        key = _key_of(group)
        number = self._numbers[rank, call.index]
        rounds = self._rounds[key]
        while len(rounds) <= number:
            rounds.append(_Round())
        here = rounds[number]
        here.calls[rank] = call
        here.begin = max(here.begin, self._begun[rank, call.index])
        self._round_of[rank, call.index] = group, here
        if key in self._differ:
            return self._end(rank, call)
        if any(member not in here.calls for member in group.ranks if member in self._known):
            return []
        end = self._free[key] = max(self._free[key], here.begin) + self._cost(call)
        if what := difference(here.calls):
            self._differ.add(key)
            self._played.disagreements.append(Disagreement(group, number + 1, dict(here.calls), what))
        woken = [one for member, theirs in here.calls.items() for one in self._end(member, theirs, end)]
        if key in self._differ:  # what has come to later ones already waits no more, either
            for later in rounds[number + 1 :]:
                woken += [one for member, theirs in later.calls.items() for one in self._end(member, theirs)]
        return woken

    def _offer(self, rank: int, call: Call) -> list[Thread]:
        """Match a message with its other half, if that is there."""
        group, tag, shape = _key_of(call.shape.group), call.shape.tag, call.shape
        peer = shape.peer
        if peer is not None and peer not in self._known:
            return self._end(rank, call)
        if shape.collective == "send":
            for asked in (rank, None):
                if waiting := self._wanted.get((group, asked, peer, tag)):
                    return self._matched(call, waiting.popleft())
            self._offers[group, rank, peer, tag].append(call)
            return self._end(rank, call) if shape.bytes <= AT_ONCE else []
        senders: Iterable[object] = call.shape.group.ranks if peer is None else (peer,)
        for sender in senders:
            if waiting := self._offers.get((group, sender, rank, tag)):
                return self._matched(waiting.popleft(), call)
        self._wanted[group, peer, rank, tag].append(call)
        return self._end(rank, call) if peer is None and self._unknown_members(call) else []

    def _matched(self, sent: Call, received: Call) -> list[Thread]:
        if sent.shape.inputs is not None and received.shape.outputs is not None and not sent.shape.is_of_objects:
            given = (sent.shape.dtype, sum(sent.shape.parts("inputs")))
            taken = (received.shape.dtype, sum(received.shape.parts("outputs")))
            if given != taken and _key_of(sent.shape.group) not in self._differ_in_messages:
                self._differ_in_messages.add(_key_of(sent.shape.group))
                calls = {sent.rank: sent, received.rank: received}
                self._played.disagreements.append(Disagreement(sent.shape.group, 0, calls, "the size or dtype"))
        begin = max(self._begun[sent.rank, sent.index], self._begun[received.rank, received.index])
        end = begin + self._cost(sent)
        return self._end(sent.rank, sent, end) + self._end(received.rank, received, end)

    def _end(self, rank: int, call: Call, end: float | None = None) -> list[Thread]:
        name = (rank, call.index)
        if name in self._over:
            return []
        self._over[name] = self._begun.get(name, 0.0) if end is None else end
        return self._sleepers.pop(name, [])

    def _unknown_members(self, call: Call) -> bool:
        return any(rank not in self._known for rank in call.shape.group.ranks)

    def _stuck(self, rank: int, call: Call) -> Stuck:
        shape = call.shape
        if shape.is_message:
            missing = [
                member for member in (shape.group.ranks if shape.peer is None else (shape.peer,)) if member != rank
            ]
        else:
            group, here = self._round_of[rank, call.index]
            missing = [member for member in group.ranks if member not in here.calls and member in self._known]
        busy = {one for (one, _), steps in self._steps.items() if steps}
        return Stuck(rank, call, missing, [one for one in missing if one in self._known and one not in busy])


def half_made(recording: Recording) -> list[HalfMade]:
    """Return the groups that not all of their members have created, as far as these were recorded."""
    made: dict[Key, tuple[Group, list[int]]] = {}
    for rank, one in sorted(recording.ranks.items()):
        for _, group in one.groups:
            made.setdefault(_key_of(group), (group, []))[1].append(rank)
    halves = []
    for group, ranks in made.values():
        there = set(ranks)
        if missing := [rank for rank in group.ranks if rank in recording.ranks and rank not in there]:
            halves.append(HalfMade(group, ranks, missing))
    return halves


def steps_of(calls: Sequence[Call]) -> list[Step]:
    """Return what a rank did, in the order of time: each call's begin, and the wait for one that it had started."""
    steps = [(call.begin, 0, call, False) for call in calls]
    steps += [(call.waited, 1, call, True) for call in calls if call.in_background and call.waited is not None]
    return [(call, is_wait) for _, _, call, is_wait in sorted(steps, key=lambda one: (one[0], one[1], one[2].index))]


def _key_of(group: Group) -> Key:
    return group.name, group.ranks, group.occurrence
