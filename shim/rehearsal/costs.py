"""What a step of a rehearsed job moves, by group and operation, and how long it takes on a cluster without what ranks compute."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from shim.rehearsal.clusters import Cluster, Layout, Use, layout_of, pairs_of, use_of
from shim.rehearsal.playing import Played, play
from shim.trace.calls import Call, Group, Recording

_MOST_ROWS = 24
_MOST_LARGE = 5
_MOST_CALLS = 20_000  # of a rank, among which its steps are looked for
_MOST_HOSTS = 12  # whose bytes a matrix of text shows


@dataclass
class Row:
    """The calls of one operation in groups that lie alike; figures are those of the rank that has most of it, for a step."""

    operation: str
    layout: str
    algorithm: str
    calls: float = 0
    inside: float = 0.0
    across: float = 0.0
    seconds: float = 0.0
    background: float = 0.0  # of these seconds, those between start and wait, in which the program makes other calls


@dataclass
class Costs:
    """Those of *recording*, whose ranks are on hosts of *per_host*; times only where a *cluster* is described."""

    recording: Recording
    per_host: int
    cluster: Cluster | None
    played: Played
    _layouts: dict[Group, Layout] = field(default_factory=dict)
    _uses: dict[tuple[int, int], Use] = field(default_factory=dict)

    @classmethod
    def of(cls, recording: Recording, per_host: int, cluster: Cluster | None) -> Costs:
        costs = cls(recording, per_host, cluster, Played())
        costs.played = play(recording, recording.ranks, costs.seconds)
        return costs

    def use(self, call: Call) -> Use:
        """Return what *call* uses, as other calls of its line do."""
        name = (id(call.shape), call.rank if call.shape.is_message else -1)
        if name not in self._uses:
            self._uses[name] = use_of(call.shape, self.layout(call.shape.group), call.rank, self.per_host)
        return self._uses[name]

    def layout(self, group: Group) -> Layout:
        if group not in self._layouts:
            self._layouts[group] = layout_of(group.ranks, self.per_host)
        return self._layouts[group]

    def seconds(self, call: Call) -> float:
        return self.cluster.seconds(self.use(call)) if self.cluster is not None else 0.0

    @cached_property
    def steps(self) -> dict[int, Step]:
        """The calls of each rank's steps."""
        found: dict[tuple[Any, ...], Step] = {}
        steps = {}
        for rank, one in self.recording.ranks.items():
            calls = [call for call in one.calls if not call.is_refused]
            names = tuple((call.shape.collective, call.shape.source, call.shape.bytes) for call in calls)
            if names not in found:
                found[names] = Step.among(names)
            steps[rank] = found[names]
        return steps

    @cached_property
    def rows(self) -> list[Row]:
        """The table, with what moves most first."""
        most: dict[tuple[str, str, str], Row] = {}
        for rank, step in self.steps.items():
            mine: dict[tuple[str, str, str], Row] = {}
            for call in self._calls_in(rank, step):
                use, layout = self.use(call), self.layout(call.shape.group).text()
                row = mine.setdefault(
                    (call.shape.collective, layout, use.algorithm), Row(call.shape.collective, layout, use.algorithm)
                )
                row.calls += 1 / step.times
                row.inside += use.inside / step.times
                row.across += use.across / step.times
                row.seconds += self.seconds(call) / step.times
                times = self.played.times.get((rank, call.index))
                if times is not None and call.in_background:
                    waited = times.end if times.waited is None else times.waited
                    row.background += min(self.seconds(call), waited - times.begin) / step.times
            for name, row in mine.items():
                if name not in most or _weight(row) > _weight(most[name]):
                    most[name] = row
        return sorted(most.values(), key=_weight, reverse=True)

    @cached_property
    def between_hosts(self) -> dict[tuple[int, int], float]:
        """The bytes that go from one host to another in a step."""
        pairs: dict[tuple[int, int], float] = defaultdict(float)
        seen: set[tuple[Group, int]] = set()
        for rank, step in sorted(self.steps.items()):
            numbers: Counter[Group] = Counter()
            for call in self._calls_in(rank, step):
                group = call.shape.group
                numbers[group] += not call.shape.is_message
                if call.shape.collective == "send" and call.shape.peer is not None:
                    here, there = rank // self.per_host, call.shape.peer // self.per_host
                    if here != there:
                        pairs[here, there] += call.shape.bytes / step.times
                elif not call.shape.is_message and (group, numbers[group]) not in seen:
                    seen.add((group, numbers[group]))
                    for one, other, size in pairs_of(call.shape, self.layout(group), self.use(call)):
                        pairs[one, other] += size / step.times
        return dict(pairs)

    @cached_property
    def step_seconds(self) -> float:
        """How long the slowest rank's step takes."""
        return max((self._span(rank, step) for rank, step in self.steps.items()), default=0.0)

    def timed(self) -> Recording:
        """Return the recording with the times that its calls would take."""
        ranks = {
            rank: replace(one, calls=list(map(self._timed, one.calls)), host=f"host {rank // self.per_host}")
            for rank, one in self.recording.ranks.items()
        }
        return replace(self.recording, ranks=ranks)

    def _timed(self, call: Call) -> Call:
        times = self.played.times.get((call.rank, call.index))
        if times is None:
            return call
        waited = None if times.waited is None else _nanoseconds(times.waited)
        return replace(call, begin=_nanoseconds(times.begin), waited=waited, end=_nanoseconds(times.end))

    def text(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def as_json(self) -> dict[str, Any]:
        """Return all figures: bytes and seconds of a step."""
        return {
            "steps": {rank: [step.length, step.times] for rank, step in self.steps.items()},
            "operations": [vars(row) for row in self.rows],
            "between_hosts": [[*pair, size] for pair, size in sorted(self.between_hosts.items())],
            "seconds": self.step_seconds if self.cluster is not None else None,
        }

    def _calls_in(self, rank: int, step: Step) -> Iterator[Call]:
        calls = [call for call in self.recording.ranks[rank].calls if not call.is_refused]
        return (
            call for call in calls[step.first : step.first + step.length * step.times] if not call.shape.is_internal
        )

    def _span(self, rank: int, step: Step) -> float:
        times = [self.played.times[rank, call.index] for call in self._calls_in(rank, step)]
        return (max(one.end for one in times) - times[0].begin) / step.times if times else 0.0

    def _lines(self) -> Iterator[str]:
        busiest = max(self.steps, key=lambda rank: self.steps[rank].length, default=0)
        step = self.steps.get(busiest, Step(0, 0, 1))
        often = f"a step is {step.length} calls of rank {busiest}, and comes {step.times} times"
        yield f"What ranks send in a step, each at most ({often if step.times > 1 else 'no steps that repeat were found: all calls'}):"
        has_times = self.cluster is not None
        table = [["operation", "ranks", "calls", "MB inside", "MB across"] + ["ms", "ms in background"] * has_times]
        for row in self.rows[:_MOST_ROWS]:
            table.append([row.operation, row.layout, _number(row.calls), _mb(row.inside), _mb(row.across)])
            table[-1] += [_number(row.seconds * 1e3), _number(row.background * 1e3), row.algorithm] * has_times
        yield from _aligned(table, (0, 1, 7))
        if len(self.rows) > _MOST_ROWS:
            yield f"  and {len(self.rows) - _MOST_ROWS} more"
        yield from self._largest()
        groups = {(group.name, group.ranks) for one in self.recording.ranks.values() for _, group in one.groups}
        most = max((len(one.groups) for one in self.recording.ranks.values()), default=0)
        yield f"Groups: {len(groups)}; a rank is in {most} of them at most."
        yield from self._between_hosts()
        if self.cluster is not None:
            yield (
                f"With {self.cluster.inside.text()} inside hosts, and {self.cluster.across.text()} between them, for each rank, "
                f"a step takes {self.step_seconds * 1e3:.4g} ms besides what the ranks compute."
            )

    def _largest(self) -> Iterator[str]:
        by_line = {call.line(): call for call in self.recording.calls if not call.shape.is_internal}
        largest = sorted(by_line.values(), key=lambda call: call.shape.bytes, reverse=True)[:_MOST_LARGE]
        if largest:
            yield "Largest calls:"
        for call in largest:
            yield f"  {_mb(call.shape.bytes)} MB: {call.line()}"

    def _between_hosts(self) -> Iterator[str]:
        pairs = self.between_hosts
        hosts = sorted({host for pair in pairs for host in pair})
        if not hosts:
            return
        yield "MB between hosts in a step, from each line's host to each column's:"
        shown = hosts[:_MOST_HOSTS]
        table = [["", *map(str, shown)]]
        table += [[str(one), *(_mb(pairs.get((one, other), 0)) for other in shown)] for one in shown]
        yield from _aligned(table, ())
        if len(hosts) > len(shown):
            yield f"  and {len(hosts) - len(shown)} more hosts"


@dataclass(frozen=True)
class Step:
    """The *length* calls from *first* on, which are made *times* times."""

    first: int
    length: int
    times: int

    @classmethod
    def among(cls, names: Sequence[Any]) -> Step:
        """Find the part of *names* that repeats and covers most of them; all of them where none does."""
        known: dict[Any, int] = {}
        numbers = np.array([known.setdefault(name, len(known)) for name in names[:_MOST_CALLS]], np.int64)
        best, covered = cls(0, len(names), 1), len(numbers) * 2 // 3  # layers of a model repeat, too
        for length in range(1, len(numbers) // 2 + 1):
            unlike = np.flatnonzero(numbers[length:] != numbers[:-length])
            edges = np.concatenate(([-1], unlike, [len(numbers) - length]))
            runs = np.diff(edges) - 1
            place = int(runs.argmax())
            times = int(runs[place]) // length + 1
            if times > 1 and times * length > covered:
                best, covered = cls(int(edges[place]) + 1, length, times), times * length
        return best


def _weight(row: Row) -> tuple[float, float, float]:
    return row.seconds, row.across, row.inside


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def _mb(size: float) -> str:
    return _number(size / 1e6)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


def _aligned(table: Sequence[Sequence[str]], texts: Sequence[int]) -> Iterator[str]:
    """Put the cells of each column under each other, those of the columns *texts* to the left."""
    widths = [max(len(row[place]) for row in table if place < len(row)) for place in range(max(map(len, table)))]
    for row in table:
        cells = [
            cell.ljust(width) if place in texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        yield "  " + "  ".join(cells).rstrip()
