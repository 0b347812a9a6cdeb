"""A whole soak: eras, some groups and calls in them, on rank processes, one after the other; what they found is compared bit by bit."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from shim.conformance.oracle import Array
from shim.conformance.soak.draw import LARGEST, Draw, kinds
from shim.conformance.soak.operations import COMPUTING, ME, OPERATIONS, Made, make_mistakes
from shim.conformance.soak.shared_tensors import ON_SHARED_TENSORS, reduced_views
from shim.core import groups
from shim.core.groups import ProcessGroup
from shim.launch.pool import Outcome, RankPool

_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def difference(seen: Array, expected: Array) -> str:
    """Say where *seen* differs from *expected*, of one dimension both; empty where it does not.

    Any NaN is as good as any other: what is in one depends on the processor.
    """
    if seen.dtype != expected.dtype or seen.shape != expected.shape:
        return f"{seen.dtype} {seen.shape} where {expected.dtype} {expected.shape} was expected"
    left, right = _real(seen), _real(expected)
    bits = _BITS[left.dtype.itemsize]
    differs = left.view(bits) != right.view(bits)
    if not differs.any():
        return ""
    with np.errstate(invalid="ignore"):
        differs &= ~((left != left) & (right != right))
    if not differs.any():
        return ""
    at = int(np.flatnonzero(differs)[0])
    return f"{left[at]!r} where {right[at]!r} was expected, at {at} of {left.size} ({int(differs.sum())} differ)"


def _real(array: Array) -> Array:
    """Return *array* in one piece, complex numbers as two real ones each."""
    whole = np.ascontiguousarray(array)
    return whole.view(whole.real.dtype) if whole.dtype.kind == "c" else whole


_TIMEOUT = 60.0  # seconds
_MOST_UNDER_WAY = 8
_MOST_DIFFERENCES = 5  # that are told of
_MOST_BYTES_UNDER_WAY = 1 << 28


@dataclass(frozen=True)
class Era:
    """Calls with numbers from ``first`` on, all drawn from ``seed`` and their number, in ``groups`` groups beside the world."""

    seed: int
    first: int
    calls: int
    groups: int
    most: int = LARGEST  # bytes of a rank's part


@dataclass
class Found:
    """What an era gave on one rank; ``memory`` in bytes, of what is resident."""

    calls: int = 0
    mistakes: int = 0
    groups: int = 0
    bytes: int = 0
    differences: list[str] = field(default_factory=list)
    memory: int = 0
    descriptors: int = 0
    mappings: int = 0


@dataclass
class _UnderWay:
    what: str
    made: Made


def carry_out(era: Era) -> Found:
    """Carry *era* out, with the world that is there, or a new one."""
    world = groups.world(ME) if groups.is_initialized() else groups.enter_world(ME, "soak", timeout=_TIMEOUT)
    run = _Run(era, world)
    run.make_groups()
    for number in range(era.first, era.first + era.calls):
        run.call(number)
    run.settle()
    run.close_groups()
    return run.found


class _Run:
    def __init__(self, era: Era, world: ProcessGroup) -> None:
        self.found = Found()
        self._era = era
        self._world = world
        self._groups = [world]
        self._under_way: list[_UnderWay] = []
        self._kinds = kinds()

    def make_groups(self) -> None:
        """Make groups of any ranks in any order, so that they overlap and lie in each other."""
        draw = Draw(f"{self._era.seed}/groups/{self._era.first}", self._world.size)
        for _ in range(self._era.groups):
            ranks = draw.some(range(self._world.size), 1)
            self._groups.append(groups.new_group(ME, ranks))
            self.found.groups += 1

    def close_groups(self) -> None:
        for group in self._groups[1:]:
            groups.close_group(group)
        self.found.memory, self.found.descriptors, self.found.mappings = _held()

    def call(self, number: int) -> None:
        """Make the call with this *number*, if this rank belongs to the group that it is drawn for."""
        shared = Draw(f"{self._era.seed}/{number}", len(self._groups))
        group = shared.one(self._groups)
        if group.rank < 0:
            return
        draw = Draw(f"{self._era.seed}/{number}/call", group.size, self._era.most)
        alone = Draw(f"{self._era.seed}/{number}/{self._world.rank}", 1)  # what each rank decides for itself
        what = f"seed {self._era.seed} call {number} on rank {group.rank} of {list(group.ranks)}"
        if draw.is_rare(50):
            self._mistake(what, draw, group, alone.is_rare(2))
            return
        operation, kind = draw.one((*OPERATIONS, *ON_SHARED_TENSORS)), draw.one(self._kinds)
        if operation in (*COMPUTING, reduced_views) and not kind.ops:
            kind = self._kinds[0]
        count = draw.count(kind)
        made = operation(draw, group, kind, count, alone.is_rare(2))
        self.found.calls += 1
        self._under_way.append(_UnderWay(f"{what}: {operation.__name__.strip('_')} of {count} {kind.name}", made))
        if alone.is_rare(3):
            for work in made.works:
                work.start()
            if len(self._under_way) <= _MOST_UNDER_WAY and self._bytes_under_way() < _MOST_BYTES_UNDER_WAY:
                return
        self.settle()

    def settle(self) -> None:
        """Wait for all that is under way, the last one first, and compare."""
        for one in reversed(self._under_way):
            for work in one.made.works:
                work.wait()
        for one in self._under_way:
            self._compare(one)
        self._under_way.clear()

    def _mistake(self, what: str, draw: Draw, group: ProcessGroup, now: bool) -> None:
        for told in make_mistakes(draw, group, now):
            self.found.mistakes += 1
            if told:
                self._tell(f"{what}: {told}")

    def _bytes_under_way(self) -> int:
        return sum(placed.memory.nbytes for one in self._under_way for placed, _ in one.made.outcomes)

    def _compare(self, one: _UnderWay) -> None:
        for place, (placed, expected) in enumerate(one.made.outcomes):
            self.found.bytes += expected.nbytes
            told = difference(placed.tensor, expected)
            if not told and not placed.is_intact_outside():
                told = "memory outside the tensor was written"
            if told:
                self._tell(f"{one.what}: tensor {place}: {told}")
        for check in one.made.checks:
            if told := check():
                self._tell(f"{one.what}: {told}")

    def _tell(self, difference: str) -> None:
        if len(self.found.differences) < _MOST_DIFFERENCES:
            self.found.differences.append(difference)


def _held() -> tuple[int, int, int]:
    """Return this process's resident bytes, open descriptors and mappings."""
    with open("/proc/self/statm") as statm, open("/proc/self/maps") as maps:
        pages = int(statm.read().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd")), sum(1 for _ in maps)


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
