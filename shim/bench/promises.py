"""What the project promises of its speed, each held against a record: the figure, and whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from shim.bench.cases import SIZES, Case, size_text
from shim.bench.comparison import Comparison
from shim.bench.floors import ONE_COPY, TWO_COPIES

__all__ = ["FIVE", "Finding", "findings"]

FIVE = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
_KB, _MB = 1 << 10, 1 << 20
_DTYPE = "float32"
_OVERLAP_SIZE = 16 * _MB
_THROUGH = "torch"
_THROUGH_SHARED = "torch-shared"
_OPEN_MPI = ("openmpi", "openmpi-tuned")
_GLOO = ("gloo", "gloo-lo")


@dataclass(frozen=True)
class Finding:
    """A promise, the worst figure that it was held against, and the verdict: "holds", "does not hold" or "not measured".

    ``told`` is the figure in words. ``missing`` counts cases without a figure; a promise that has some is broken or not measured, and never holds.
    """

    promise: str
    told: str
    verdict: str
    missing: int = 0


def findings(comparison: Comparison) -> list[Finding]:
    """Hold every promise against the record."""
    return list(_findings(comparison))


def _findings(comparison: Comparison) -> Iterator[Finding]:
    two = _cases(FIVE, 2)
    at_8, up_to_1mb, from_1mb = _of(two, 8, 8), _of(two, 4 * _KB, _MB), _of(two, _MB)
    for parts, peers, setting in (("abc", _OPEN_MPI[:1], ""), ("def", _OPEN_MPI, ", at its best setting")):
        promises = (
            (f"4 KB to 1 MB: at least 2 times as fast as Open MPI{setting}", up_to_1mb, 2),
            (f"from 1 MB: at least as fast as Open MPI{setting}", from_1mb, 1),
            (f"8 B: at most 1.2 times the time of Open MPI{setting}", at_8, 1 / 1.2),
        )
        for part, (promise, cases, least) in zip(parts, promises, strict=True):
            yield _speedup(comparison, f"1{part}. 2 ranks, {promise}", cases, peers, least)
    yield _speedup(
        comparison, "2a. 2 ranks, up to 4 KB: at least 50 times as fast as gloo", _of(two, 0, 4 * _KB), _GLOO, 50
    )
    yield _speedup(
        comparison, "2b. 2 ranks, 64 KB: at least 15 times as fast as gloo", _of(two, 64 * _KB, 64 * _KB), _GLOO, 15
    )
    yield _speedup(comparison, "2c. 2 ranks, from 1 MB: at least 3 times as fast as gloo", from_1mb, _GLOO, 3)
    yield _near_floor(
        comparison, "3a. 2 ranks, from 1 MB: within 1.25 times the two-copy floor", from_1mb, _THROUGH, TWO_COPIES
    )
    yield _near_floor(
        comparison, "3b. 2 ranks, from 1 MB, tensors in shared memory: within 1.25 times the one-copy floor", from_1mb,
        _THROUGH_SHARED, ONE_COPY,
    )  # fmt: skip
    crowded = [case for ranks in (4, 8) for case in _cases(FIVE, ranks)]
    yield _speedup(comparison, "4. 4 and 8 ranks: at least as fast as Open MPI", crowded, _OPEN_MPI, 1)
    yield from _latencies(comparison)
    yield _half_precision(comparison)
    yield _overlapping(comparison)


def _cases(collectives: Iterable[str], ranks: int) -> list[Case]:
    return [Case(collective, ranks, _DTYPE, size) for collective in collectives for size in SIZES]


def _of(cases: Iterable[Case], least: int, most: int = SIZES[-1]) -> list[Case]:
    return [case for case in cases if least <= case.size <= most]


def _speedup(
    comparison: Comparison, promise: str, cases: Iterable[Case], peers: Collection[str], least: float
) -> Finding:
    """Hold each case against the fastest of *peers*, the settings of a library."""

    def figure(case: Case) -> tuple[float, str] | None:
        ours = comparison.median(case, _THROUGH)
        theirs = comparison.best_peer(case, lambda name: name in peers)
        if ours is None or theirs is None:
            return None
        return theirs[0] / ours, f"{theirs[0] / ours:.2f} times as fast as {theirs[1]}, {_where(case)}"

    return _worst(promise, cases, figure, lambda value: value >= least, lowest=True)


def _near_floor(comparison: Comparison, promise: str, cases: Iterable[Case], through: str, kind: str) -> Finding:
    def figure(case: Case) -> tuple[float, str] | None:
        ours, floor = comparison.median(case, through), comparison.floor(case, kind)
        if ours is None or not floor:
            return None
        return ours / floor, f"{ours / floor:.2f} times the floor, {_where(case)}"

    return _worst(promise, cases, figure, lambda value: value <= 1.25)


def _latencies(comparison: Comparison) -> Iterator[Finding]:
    eight, barrier = Case("all_reduce", 2, _DTYPE, 8), Case("barrier", 2, _DTYPE, 0)
    for part, name, cases, most in (
        ("5a", "engine", (barrier, eight), 0.5),
        ("5b", "torch", (eight,), 1.2),
        ("5b", "paddle_3", (eight,), 1.2),
        ("5b", "torch-numpy", (eight,), 1.2),
        ("5c", "mindspore", (eight,), 2.5),
    ):
        what = "barrier and all_reduce of 8 B" if len(cases) > 1 else "all_reduce of 8 B"

        def figure(case: Case, name: str = name) -> tuple[float, str] | None:
            median = comparison.median(case, name)
            return None if median is None else (median, f"{median:.2f} us, {case.collective}")

        def within(value: float, most: float = most) -> bool:
            return value <= most

        yield _worst(f"{part}. 2 ranks, {name}: {what} in at most {most} us", cases, figure, within)


def _half_precision(comparison: Comparison) -> Finding:
    def figure(case: Case) -> tuple[float, str] | None:
        whole = comparison.median(case, _THROUGH)
        half = comparison.median(Case(case.collective, case.ranks, "bfloat16", case.size // 2), _THROUGH)
        return None if half is None or whole is None else (half / whole, f"{half / whole:.2f} times the time")

    promise = "6. 2 ranks, all_reduce of as many elements as 16 MB of float32: bfloat16 in at most 0.6 times the time"
    return _worst(promise, [Case("all_reduce", 2, _DTYPE, 16 * _MB)], figure, lambda value: value <= 0.6)


def _overlapping(comparison: Comparison) -> Finding:
    promise = "7. 2 ranks, all_reduce of 16 MB behind a matrix product: together at most 1.15 times the longer one"
    case = Case("all_reduce", 2, _DTYPE, _OVERLAP_SIZE)
    found = [
        one for one in comparison.record.overlaps if one.case == case and one.contender == _THROUGH and not one.reason
    ]
    if not found:
        return Finding(promise, "no figure", "not measured", 1)
    ratio, usable = found[0].ratio, int(comparison.record.machine["processors_usable"])
    free = "" if usable > case.ranks else f", with {usable} processors, none of them free for it"
    return Finding(promise, f"{ratio:.2f} times the longer one{free}", "holds" if ratio <= 1.15 else "does not hold")


def _worst(
    promise: str,
    cases: Iterable[Case],
    figure: Callable[[Case], tuple[float, str] | None],
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
    broken = [one for one in found if not kept(one[0])]
    told = f"{'' if len(found) == 1 else 'worst of ' + str(len(found)) + ': '}{found[0][1]}"
    if broken:
        told += f"; {len(broken)} of {len(found)} break it" if len(found) > 1 else ""
        return Finding(promise, told, "does not hold", missing)
    return Finding(promise, told, "not measured" if missing else "holds", missing)


def _where(case: Case) -> str:
    return f"{case.collective} of {size_text(case.size)} on {case.ranks} ranks"
