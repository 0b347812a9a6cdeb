"""What ranks send and what each must then have, worked out with numpy alone.

Every rank's elements repeat with a period that is prime, so that no part of a tensor looks like another, and are whole numbers so small
that every dtype holds their sums. bfloat16 is held as its bits, in uint16.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shim.bench.cases import Case

Array = npt.NDArray[Any]

ARRAY_DTYPES = {"float32": "float32", "bfloat16": "uint16", "int64": "int64"}  # numpy's, of what holds the elements

_PERIOD = 251


def input_of(rank: int, dtype: str) -> Array:
    """Return one period of *rank*'s input."""
    return _encoded(_numbers(rank), dtype)


def fill(array: Array, period: Array) -> None:
    """Write *period* over all of *array*, again and again."""
    whole = len(array) // _PERIOD * _PERIOD
    if whole:
        array[:whole].reshape(-1, _PERIOD)[...] = period
    array[whole:] = period[: len(array) - whole]


def mismatch(case: Case, rank: int, output: Array) -> str | None:
    """Return what is wrong with *rank*'s output, or None where every element is as it must be."""
    begin = 0
    for count, period in _expected(case, rank):
        part = output[begin : begin + count]
        whole = len(part) // _PERIOD * _PERIOD
        wrong = [
            begin + at + int(index)
            for at, got, want in (
                (0, part[:whole].reshape(-1, _PERIOD), period),
                (whole, part[whole:], period[: count - whole]),
            )
            for index in np.flatnonzero(got != want)[:1]
        ]
        if wrong:
            want = period[(wrong[0] - begin) % _PERIOD]
            return f"rank {rank} of {case}: element {wrong[0]} is {output[wrong[0]]}, and should be {want}"
        begin += count
    return None if begin == len(output) else f"rank {rank} of {case}: has {len(output)} elements, not {begin}"


def _expected(case: Case, rank: int) -> list[tuple[int, Array]]:
    """Return the output's parts: how many elements, and the period that they repeat, from its beginning."""
    ranks, count = range(case.ranks), case.output_count(rank)
    if case.collective in ("all_gather", "all_gather_unequal"):
        return [(case.parts[other], input_of(other, case.dtype)) for other in ranks]
    if case.collective == "all_to_all":
        part = case.count // case.ranks
        return [(part, np.roll(input_of(other, case.dtype), -rank * part)) for other in ranks]
    if case.collective in ("all_reduce", "reduce_scatter"):
        total = _encoded(sum((_numbers(other) for other in ranks), np.zeros(_PERIOD, np.int64)), case.dtype)
        return [(count, np.roll(total, -rank * count) if case.collective == "reduce_scatter" else total)]
    return [(count, input_of(rank ^ 1 if case.collective == "send_receive" else 0, case.dtype))]


def _numbers(rank: int) -> npt.NDArray[np.int64]:
    return (np.arange(_PERIOD) * 3 + 5 * rank) % 11 + 1


def _encoded(numbers: npt.NDArray[np.int64], dtype: str) -> Array:
    if dtype == "bfloat16":  # the upper half of a float32; exact for whole numbers below 256
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return numbers.astype(ARRAY_DTYPES[dtype])
