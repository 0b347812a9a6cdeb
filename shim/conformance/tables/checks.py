"""What one call of a cell gave and must give, and the checks that every column makes in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from shim.conformance import oracle
from shim.conformance.assertions import assert_raises, assert_same_array, assert_that
from shim.conformance.oracle import Array
from shim.errors import ShimError

_LATE = 0.02  # seconds that rank 0 comes later than the others


class Check(NamedTuple):
    """What a call gave on one rank, and what it must give: arrays, sequences of these, or plain values."""

    call: str
    seen: Any
    expected: Any


def assert_as_expected(check: Check) -> None:
    """Raise an AssertionError that begins with the call, unless what was seen is what was expected."""
    try:
        _assert_same(check.seen, check.expected)
    except AssertionError as difference:
        raise AssertionError(f"{check.call}: {difference}") from None


def _assert_same(seen: Any, expected: Any) -> None:
    if isinstance(expected, np.ndarray):
        assert_that(isinstance(seen, np.ndarray), f"an array was expected, {seen!r} seen")
        assert_same_array(seen, expected)
    elif isinstance(expected, (list, tuple)):
        assert_that(type(seen) is type(expected), f"{expected!r} was expected, {seen!r} seen")
        assert_that(len(seen) == len(expected), f"{len(expected)} parts were expected, {len(seen)} seen")
        for part, its_expected in zip(seen, expected, strict=True):
            _assert_same(part, its_expected)
    else:
        same = type(seen) is type(expected) and seen == expected
        assert_that(same, f"{expected!r} was expected, {seen!r} seen")


def refusal(name: str, told: str, function: Callable[..., object], *arguments: Any) -> Check:
    """Check that a call is refused by an error of this project whose message says the function's *name* and *told*."""
    text = str(assert_raises(ShimError, function, *arguments))
    clear = name in text and told in text
    return Check(f"{name} refused", "in clear words" if clear else text, "in clear words")


def waited(rank: int, barrier: Callable[[], object], all_times: Callable[[Array], Sequence[Array]]) -> Check:
    """Check that no rank leaves a barrier before the last one, rank 0, has come to it.

    *all_times* returns all ranks' arrays of one time. The clock is the same in every process of a machine.
    """
    if rank == 0:
        time.sleep(_LATE)
    come = time.monotonic()
    barrier()
    gone = time.monotonic()
    times = [float(one.reshape(-1)[0]) for one in all_times(np.array([come]))]
    return Check("barrier", gone >= oracle.barrier(times)[rank], True)


def reduce_ops_of(dtype: str) -> tuple[str, ...]:
    """Return the reduce ops, called as in the oracle, that all frameworks have and that are defined for *dtype*."""
    if dtype.startswith("float8"):
        return ()
    if dtype.startswith("complex"):
        return ("SUM", "AVG")
    ordered = ("SUM", "PRODUCT", "MIN", "MAX")
    return (*ordered, "AVG") if "float" in dtype else ordered
