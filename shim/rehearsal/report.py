"""What a rehearsal found, as text and as JSON: calls that differ, ranks that could not go on, and programs that failed."""

from __future__ import annotations

import signal
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shim.rehearsal.costs import Costs
from shim.rehearsal.playing import Disagreement, HalfMade, Played, Stuck
from shim.rehearsal.running import Ended
from shim.trace.calls import Call, Recording

_MOST_ROWS = 12  # of one finding
_LAST_LINES = 12  # of what a rank that failed has printed


@dataclass
class Findings:
    """All of them; *failed* are the programs that ended badly, and *costs* are there if they were asked for."""

    recording: Recording
    ran: Sequence[int]
    failed: Sequence[Ended]
    played: Played
    passes: int = 1
    is_settled: bool = True  # every rank has got what the others pass
    costs: Costs | None = None

    @property
    def is_right(self) -> bool:
        return not self.failed and not self.absent and self.played.is_right

    @property
    def absent(self) -> list[int]:
        """The ranks whose programs have ended well without entering the world."""
        there = {one.rank for one in self.failed} | self.recording.ranks.keys()
        return [rank for rank in self.ran if rank not in there]

    def text(self) -> str:
        found = "\n".join(line for part in self._parts() for line in (*part, ""))
        return found + (f"{self.costs.text()}\n" if self.costs is not None else "") + self._summary()

    def _parts(self) -> Iterator[list[str]]:
        if not self.is_settled:
            yield [
                f"The last of {self.passes} passes still changed what ranks pass to each other: what follows may be no mistake.",
                "Raise --passes, unless the program passes what differs each time.",
            ]
        if self.failed:
            yield _of_failed(self.failed)
        if self.absent:
            yield [f"The programs of {ranks_text(self.absent)} ended without entering the world."]
        if self.played.half_made:
            yield _of_half_made(self.played.half_made)
        for one in self.played.disagreements:
            yield _of_disagreement(one)
        if self.played.stuck:
            yield _of_stuck(self.played.stuck)
        if self.played.lost:
            yield _of_lost(self.played.lost)
        if made_up := self._made_up():
            yield made_up

    def _made_up(self) -> list[str]:
        """Return what to say of numbers that programs have read: no mistake, but what followed may be otherwise on the cluster."""
        by_line: dict[str, list[int]] = defaultdict(list)
        for rank, one in self.recording.ranks.items():
            for source in one.made_up:
                by_line[source].append(rank)
        if not by_line:
            return []
        lines = ["Numbers that the rehearsal has made up were read; what is called next may depend on them:"]
        return lines + [f"  {ranks_text(ranks)}: {source}" for source, ranks in _rows(list(by_line.items()), lines)]

    def _summary(self) -> str:
        ranks = self.recording.ranks
        calls = sum(len(one.calls) for one in ranks.values())
        groups = {(group.name, group.ranks) for one in ranks.values() for _, group in one.groups}
        told = f"{len(self.ran)} of {self.recording.size} ranks rehearsed: {calls} calls in {len(groups)} group{'s' * (len(groups) != 1)}"
        if len(self.ran) < self.recording.size:
            told += "; what the others would have called was not compared"
        if self.passes > 1:
            told += f"; {self.passes} passes"
        return f"{told}: {'no mistake was found' if self.is_right else 'see above'}.\n"

    def as_json(self) -> dict[str, Any]:
        """Return all findings as what JSON can hold; ranks are world ranks."""
        ranks = self.recording.ranks
        return {
            "size": self.recording.size,
            "ranks": sorted(self.ran),
            "absent": self.absent,
            "is_right": self.is_right,
            "passes": self.passes,
            "is_settled": self.is_settled,
            "made_up": sorted({line for one in ranks.values() for line in one.made_up}),
            "failed": [
                {"rank": one.rank, "status": one.status, "is_late": one.is_late, "last_lines": list(one.last_lines)}
                for one in self.failed
            ],
            "half_made": [
                {"group": one.group.name, "made": list(one.made), "missing": list(one.missing)}
                for one in self.played.half_made
            ],
            "disagreements": [
                {
                    "group": one.group.name,
                    "number": one.number,
                    "what": one.what,
                    "calls": {rank: call.line() for rank, call in sorted(one.calls.items())},
                }
                for one in self.played.disagreements
            ],
            "stuck": [
                {"rank": one.rank, "call": one.call.line(), "missing": list(one.missing), "ended": list(one.ended)}
                for one in self.played.stuck
            ],
            "circle": [one.rank for one in circle_of(self.played.stuck)],
            "lost": [{"rank": call.rank, "call": call.line()} for call in self.played.lost],
            **({"costs": self.costs.as_json()} if self.costs is not None else {}),
        }


def ranks_text(ranks: Iterable[int]) -> str:
    """Return *ranks* as "rank 5" or "ranks 0-699, 701-1023"."""
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    told = [f"{first}" if first == last else f"{first}-{last}" for first, last in spans]
    shown = told if len(told) <= 2 * _MOST_ROWS else [*told[: 2 * _MOST_ROWS], f"and {len(told) - 2 * _MOST_ROWS} more"]
    is_one = len(spans) == 1 and spans[0][0] == spans[0][1]
    return f"rank{'s' * (not is_one)} {', '.join(shown)}"


def _of_failed(failed: Sequence[Ended]) -> list[str]:
    by_words: dict[tuple[str, ...], list[Ended]] = defaultdict(list)
    for one in failed:
        words = (f"{one.status} {one.is_late}", *one.last_lines[-1:])
        by_words[words].append(one)
    lines = ["Programs that failed:"]
    for same in _rows(list(by_words.values()), lines):
        first = same[0]
        how = "did not end in time" if first.is_late else _how(first.status)
        lines.append(f"{ranks_text(one.rank for one in same)}: the program {how}; rank {first.rank} wrote last:")
        lines += [f"  {line}" for line in first.last_lines[-_LAST_LINES:]]
    return lines


def _how(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    return f"was ended by {signal.Signals(-status).name}"


def _of_half_made(groups: Sequence[HalfMade]) -> list[str]:
    lines = ["Groups that not all of their members create:"]
    for one in _rows(groups, lines):
        made = f"created by {ranks_text(one.made)}, and not by {ranks_text(one.missing)}"
        lines.append(f"  {one.group.name!r} of {ranks_text(one.group.ranks)}: {made}")
    return lines


def _of_disagreement(one: Disagreement) -> list[str]:
    by_line: dict[str, list[int]] = defaultdict(list)
    for rank, call in one.calls.items():
        by_line[call.line()].append(rank)
    where = f"call {one.number} of group {one.group.name!r}" if one.number else f"a message in group {one.group.name!r}"
    lines = [f"The ranks disagree on {one.what} in {where}:"]
    lines += [f"  {ranks_text(ranks)}: {line}" for line, ranks in _rows(list(by_line.items()), lines)]
    return lines


def _of_stuck(stuck: Sequence[Stuck]) -> list[str]:
    by_wait: dict[tuple[str, str, tuple[int, ...]], list[int]] = defaultdict(list)
    for one in stuck:
        by_wait[one.call.shape.group.name, one.call.line(), tuple(one.missing)].append(one.rank)
    lines = [f"{len(stuck)} rank{'s' * (len(stuck) != 1)} would wait for ever:"]
    for (group, line, missing), ranks in _rows(list(by_wait.items()), lines):
        lines.append(f"  {ranks_text(ranks)}, in group {group!r}: {line}, for {ranks_text(missing)}")
    if ended := sorted({rank for one in stuck for rank in one.ended}):
        lines.append(f"  The program{'s' * (len(ended) != 1)} of {ranks_text(ended)} ended without coming there.")
    if circle := circle_of(stuck):
        after = [*circle[1:], circle[0]]
        waits = [
            f"rank {one.rank} waits in {one.call.line()}, for rank {other.rank}"
            for one, other in zip(circle, after, strict=True)
        ]
        lines.append(f"  They wait in a circle: {'; '.join(waits)}.")
    return lines


def circle_of(stuck: Sequence[Stuck]) -> list[Stuck]:
    """Return the shortest circle of ranks that wait for each other, beginning with its lowest; nothing where there is none."""
    by_rank = {one.rank: one for one in stuck}
    best: list[int] = []
    for start in by_rank:
        if best and len(best) <= 2:
            break
        before: dict[int, int] = {}
        queue = deque([start])
        while queue and start not in before:
            rank = queue.popleft()
            for other in by_rank[rank].missing:
                if other in by_rank and other not in before:
                    before[other] = rank
                    queue.append(other)
        if start in before:
            path = [start]
            while before[path[-1]] != start:
                path.append(before[path[-1]])
            if not best or len(path) < len(best):
                best = path[::-1]
    lowest = best.index(min(best)) if best else 0
    return [by_rank[rank] for rank in best[lowest:] + best[:lowest]]


def _of_lost(lost: Sequence[Call]) -> list[str]:
    lines = ["Messages without another half:"]
    lines += [f"  rank {call.rank}, in group {call.shape.group.name!r}: {call.line()}" for call in _rows(lost, lines)]
    return lines


def _rows(rows: Sequence[Any], lines: list[str]) -> Sequence[Any]:
    """Return as many of *rows* as are shown; the first of *lines* says how many more there are."""
    if len(rows) > _MOST_ROWS and lines:
        lines[0] += f" (the first {_MOST_ROWS} of {len(rows)} rows)"
    return rows[:_MOST_ROWS]
