"""A whole soak: eras on rank processes, one after the other, and what they found put together."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from shim.conformance.soak.draw import LARGEST
from shim.conformance.soak.rank import Era, Found, carry_out
from shim.launch.pool import Outcome, RankPool

_DEADLINE = 600.0  # seconds for an era
# glibc gives large blocks back at once, so that what is resident is what is in use, and not what is kept for later.
_GIVEN_BACK = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
_WARM_UP = 3  # eras after which memory and descriptors are to stay as they are


@dataclass(frozen=True)
class Plan:
    """``operations`` calls on ``ranks`` ranks, drawn from ``seed``, with other groups every ``era`` calls; sizes in bytes."""

    operations: int
    ranks: int
    seed: int
    era: int = 500
    groups: int = 4
    most: int = LARGEST

    def eras(self) -> Iterator[Era]:
        for first in range(0, self.operations, self.era):
            yield Era(self.seed, first, min(self.era, self.operations - first), self.groups, self.most)


@dataclass
class Summary:
    """What a soak found, of all ranks together; of memory, descriptors and mappings the largest of a rank, era by era."""

    operations: int = 0
    calls: int = 0
    mistakes: int = 0
    groups: int = 0
    bytes: int = 0
    seconds: float = 0.0
    differences: list[str] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    mappings: list[int] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.differences

    def add(self, era: Era, found: list[Found]) -> None:
        self.operations += era.calls
        self.calls += sum(one.calls for one in found)
        self.mistakes += sum(one.mistakes for one in found)
        self.groups += found[0].groups
        self.bytes += sum(one.bytes for one in found)
        self.differences += [told for one in found for told in one.differences]
        self.memory.append(max(one.memory for one in found))
        self.descriptors.append(max(one.descriptors for one in found))
        self.mappings.append(max(one.mappings for one in found))


def grown(held: list[int]) -> tuple[int, int]:
    """Return what was held at most in the first third of the eras after those that warm up, and what in the last third."""
    after = held[_WARM_UP:] or held
    third = max(1, len(after) // 3)
    return max(after[:third]), max(after[-third:])


def run(plan: Plan) -> Iterator[Summary]:
    """Carry *plan* out and yield the same summary after each era, with what it added; it ends early where a rank raised, died or hung."""
    summary, begin = Summary(), time.monotonic()
    with RankPool(plan.ranks, _GIVEN_BACK) as pool:
        for era in plan.eras():
            outcomes = pool.run(carry_out, era, deadline=_DEADLINE)
            summary.seconds = time.monotonic() - begin
            broken = [_told(era, outcome) for outcome in outcomes if outcome.error is not None]
            if broken:
                summary.differences += broken
                yield summary
                return
            summary.add(era, [outcome.value for outcome in outcomes])
            yield summary


def _told(era: Era, outcome: Outcome) -> str:
    return f"seed {era.seed}, calls {era.first} to {era.first + era.calls - 1}, rank {outcome.rank}: {outcome.error}"
