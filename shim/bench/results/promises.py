"""What the project promises of its speed, each held against a record: the figure, and whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from shim.bench.cases import COLLECTIVES, CROWDED_BYTES, NO_DTYPE, SIZES, WITHOUT_SIZE, Case, size_text
from shim.bench.floors import ONE_COPY, TWO_COPIES
from shim.bench.results.comparison import Comparison

EVERY = tuple(
    name for name in COLLECTIVES if name not in WITHOUT_SIZE
)  # and a barrier, where a time at 8 B is promised
FIVE = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
_KB, _MB = 1 << 10, 1 << 20
_DTYPE = "float32"
_OVERLAP_SIZE = 16 * _MB
_THROUGH = "torch"
_THROUGH_SHARED = "torch-shared"
_OPEN_MPI = ("openmpi", "openmpi-tuned")
_GLOO = ("gloo", "gloo-tuned")


@dataclass(frozen=True)
class Finding:
    """A promise, the worst figure that it was held against, and the verdict: "holds", "does not hold", "not measured", or "does not apply" to the machine.

    ``told`` is the figure in words. ``missing`` counts cases without a figure; a promise that has some is broken or not measured, and never holds.
    """

    promise: str
    told: str
    verdict: str
    missing: int = 0

    @property
    def is_kept(self) -> bool:
        """Whether the promise is not broken, and has been held against all figures that it needs."""
        return self.verdict in ("holds", "does not apply")


class _Figure(NamedTuple):
    """What a promise is held against in a case, the same in words, and the floors than which the promise asks for less."""

    value: float
    told: str
    below: tuple[str, ...] = ()


def findings(comparison: Comparison) -> list[Finding]:
    """Hold every promise against the record."""
    return list(_findings(comparison))


def _findings(comparison: Comparison) -> Iterator[Finding]:
    every = _cases(EVERY, 2)
    at_8, up_to_1mb, from_1mb = [*_of(every, 8, 8), _barrier(2)], _of(every, 4 * _KB, _MB), _of(every, _MB)
    for parts, peers, setting in (("abc", _OPEN_MPI[:1], ""), ("def", _OPEN_MPI, ", at its best setting")):
        promises = (
            (f"4 KB to 1 MB: at least 2 times as fast as Open MPI{setting}", up_to_1mb, 2),
            (f"from 1 MB: at least as fast as Open MPI{setting}", from_1mb, 1),
            (f"8 B and barrier: at most 1.2 times the time of Open MPI{setting}", at_8, 1 / 1.2),
        )
        for part, (promise, cases, least) in zip(parts, promises, strict=True):
            yield _speedup(comparison, f"1{part}. 2 ranks, {promise}", cases, peers, least)
    gloo, up_to_4kb, at_64kb = (
        "as fast as gloo, at its best setting",
        _of(every, 0, 4 * _KB),
        _of(every, 64 * _KB, 64 * _KB),
    )
    for promise, cases, least in (
        ("2a. 2 ranks, up to 4 KB and barrier: at least 50 times", [*up_to_4kb, _barrier(2)], 50),
        ("2b. 2 ranks, 64 KB: at least 15 times", at_64kb, 15),
        ("2c. 2 ranks, from 1 MB: at least 3 times", from_1mb, 3),
    ):
        yield _speedup(comparison, f"{promise} {gloo}", cases, _GLOO, least)
    large = _of(_cases(FIVE, 2), _MB)
    yield _near_floor(
        comparison, "3a. 2 ranks, from 1 MB: within 1.25 times the two-copy floor", large, _THROUGH, TWO_COPIES
    )
    yield _near_floor(
        comparison, "3b. 2 ranks, from 1 MB, tensors in shared memory: within 1.25 times the one-copy floor", large,
        _THROUGH_SHARED, ONE_COPY,
    )  # fmt: skip
    crowded = [case for ranks in (4, 8) for case in (*_cases(EVERY, ranks), _barrier(ranks))]
    yield _speedup(
        comparison,
        f"4. 4 and 8 ranks, tensors of up to {CROWDED_BYTES // _MB} MB together: at least as fast as Open MPI, at its best setting",
        [case for case in crowded if case.memory <= CROWDED_BYTES],
        _OPEN_MPI,
        1,
    )
    yield from _latencies(comparison)
    yield _half_precision(comparison)
    yield _overlapping(comparison)


def _cases(collectives: Iterable[str], ranks: int) -> list[Case]:
    return [Case(collective, ranks, _DTYPE, size) for collective in collectives for size in SIZES]


def _barrier(ranks: int) -> Case:
    return Case("barrier", ranks, NO_DTYPE, 0)


def _of(cases: Iterable[Case], least: int, most: int = SIZES[-1]) -> list[Case]:
    return [case for case in cases if least <= case.size <= most]


def _speedup(
    comparison: Comparison, promise: str, cases: Iterable[Case], peers: Collection[str], least: float
) -> Finding:
    """Hold each case that a library can do against the fastest of *peers*, its settings, all of which must have been measured."""

    def figure(case: Case) -> _Figure | None:
        ours = comparison.median(case, _THROUGH)
        theirs = comparison.best_peer(case, lambda name: name in peers)
        if ours is None or theirs is None:
            return None
        times = theirs[0] / ours
        is_complete = all(comparison.median(case, name) is not None or comparison.cannot(case, name) for name in peers)
        if not is_complete and times >= least:
            return None
        promised = theirs[0] / least
        below = tuple(kind for kind in (TWO_COPIES, ONE_COPY) if (comparison.floor(case, kind) or 0) > promised)
        return _Figure(times, f"{times:.2f} times as fast as {theirs[1]}, {_where(case)}", below)

    possible = [case for case in cases if not all(comparison.cannot(case, name) for name in peers)]
    return _worst(promise, possible, figure, lambda value: value >= least, lowest=True)


def _near_floor(comparison: Comparison, promise: str, cases: Iterable[Case], through: str, kind: str) -> Finding:
    def figure(case: Case) -> _Figure | None:
        ours, floor = comparison.median(case, through), comparison.floor(case, kind)
        if ours is None or not floor:
            return None
        return _Figure(ours / floor, f"{ours / floor:.2f} times the floor, {_where(case)}")

    return _worst(promise, cases, figure, lambda value: value <= 1.25)


def _latencies(comparison: Comparison) -> Iterator[Finding]:
    eight, barrier = Case("all_reduce", 2, _DTYPE, 8), _barrier(2)
    for part, name, cases, most in (
        ("5a", "engine", (barrier, eight), 0.5),
        ("5b", "torch", (eight,), 1.2),
        ("5b", "paddle_3", (eight,), 1.2),
        ("5b", "torch-numpy", (eight,), 1.2),
        ("5c", "mindspore", (eight,), 2.5),
    ):
        what = "barrier and all_reduce of 8 B" if len(cases) > 1 else "all_reduce of 8 B"

        def figure(case: Case, name: str = name) -> _Figure | None:
            median = comparison.median(case, name)
            return None if median is None else _Figure(median, f"{median:.2f} us, {case.collective}")

        def within(value: float, most: float = most) -> bool:
            return value <= most

        yield _worst(f"{part}. 2 ranks, {name}: {what} in at most {most} us", cases, figure, within)


def _half_precision(comparison: Comparison) -> Finding:
    def figure(case: Case) -> _Figure | None:
        whole = comparison.median(case, _THROUGH)
        half = comparison.median(Case(case.collective, case.ranks, "bfloat16", case.size // 2), _THROUGH)
        return None if half is None or whole is None else _Figure(half / whole, f"{half / whole:.2f} times the time")

    promise = "6. 2 ranks, all_reduce of as many elements as 16 MB of float32: bfloat16 in at most 0.6 times the time"
    return _worst(promise, [Case("all_reduce", 2, _DTYPE, 16 * _MB)], figure, lambda value: value <= 0.6)


def _overlapping(comparison: Comparison) -> Finding:
    promise = "7. 2 ranks, all_reduce of 16 MB behind a matrix product: together at most 1.15 times the longer one, where a processor is free"
    case = Case("all_reduce", 2, _DTYPE, _OVERLAP_SIZE)
    found = [
        one for one in comparison.record.overlaps if one.case == case and one.contender == _THROUGH and not one.reason
    ]
    usable = int(comparison.record.machine["processors_usable"])
    told = f"{found[0].ratio:.2f} times the longer one" if found else "no figure"
    if usable <= case.ranks:
        return Finding(promise, f"{told}, with {usable} processors, none of them free for it", "does not apply")
    if not found:
        return Finding(promise, told, "not measured", 1)
    return Finding(promise, told, "holds" if found[0].ratio <= 1.15 else "does not hold")


def _worst(
    promise: str,
    cases: Iterable[Case],
    figure: Callable[[Case], _Figure | None],
    kept: Callable[[float], bool],
    *,
    lowest: bool = False,
) -> Finding:
    """Hold each case's figure against the promise and tell the worst: the lowest one, or the highest."""
    every = [figure(case) for case in cases]
    found = sorted((one for one in every if one is not None), reverse=not lowest)
    missing = len(every) - len(found)
    if not found:
        return Finding(promise, "no figure", "not measured", missing)
    broken = [one for one in found if not kept(one.value)]
    told = f"{'' if len(found) == 1 else 'worst of ' + str(len(found)) + ': '}{found[0].told}"
    if broken:
        is_one = len(found) == 1
        told += "" if is_one else f"; {len(broken)} of {len(found)} break it"
        for kind, words in ((TWO_COPIES, "two copies take"), (ONE_COPY, "one copy takes")):
            if asking := sum(kind in one.below for one in broken):
                told += (
                    f", which is to be in less than {words}"
                    if is_one
                    else f", {asking} of which ask for less than {words}"
                )
        return Finding(promise, told, "does not hold", missing)
    return Finding(promise, told, "not measured" if missing else "holds", missing)


def _where(case: Case) -> str:
    return (
        str(case)
        if case.collective in WITHOUT_SIZE
        else f"{case.collective} of {size_text(case.size)} on {case.ranks} ranks"
    )
