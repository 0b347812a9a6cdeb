"""What one call of a cell gave and must give: elements that differ by rank and place, and the checks that every column makes alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from shim.conformance import oracle
from shim.conformance.assertions import assert_raises, assert_same_array, assert_that
from shim.conformance.kinds import ENCODED
from shim.conformance.oracle import Array
from shim.errors import ShimError

ALL_DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"),
)
_LATE = 0.02  # seconds that rank 0 comes later than the others
_BYTES_BEFORE_NAN = 0x78  # the smaller float8 patterns are numbers in both forms


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


def numbers(rank: int, shape: Sequence[int] = (2, 3), dtype: str = "float32") -> Array:
    """Return elements that differ by rank and position, up to four ranks and twenty elements.

    They are in another order of size at every position, so that no rank's array can pass for the least or greatest.
    """
    place = np.arange(int(np.prod(shape)), dtype="int64").reshape(shape)
    if dtype == "bool":
        return np.asarray((place >> rank) % 2 == 1)
    if dtype.startswith("float8"):
        return np.asarray((place * 7 + rank * 31 + 1) % _BYTES_BEFORE_NAN, "uint8").view(ENCODED[dtype])
    values = np.asarray(1 + place + 20 * ((rank + place) % 4))
    if dtype.startswith("complex"):
        return np.asarray(values + 1j * (place - 3 * rank), dtype)
    if dtype == "bfloat16":
        return _to_bfloat16(values.astype("float32"))
    return values.astype(dtype)


def everyone(size: int, shape: Sequence[int] = (2, 3), dtype: str = "float32") -> list[Array]:
    """Return the numbers of all ranks."""
    return [numbers(rank, shape, dtype) for rank in range(size)]


def exchange(rank: int, size: int, form: str) -> tuple[list[Array], list[Array]]:
    """Return the parts that *rank* sends to each rank, and those that it gets from each.

    *form* is ``equal``, or ``unequal``: parts of different numbers of rows, the first of them none.
    """
    rows = [[2 if form == "equal" else one + 2 * peer for peer in range(size)] for one in range(size)]
    parts = [oracle.cut(numbers(one, (sum(rows[one]), 3)), rows[one]) for one in range(size)]
    return parts[rank], oracle.all_to_all(parts)[rank]


def combined(inputs: Sequence[Array], op: str) -> Array:
    """Return what *op* makes of the ranks' arrays, of any dtype but float8."""
    if inputs[0].dtype != ENCODED["bfloat16"]:
        return oracle.reduce_elements(inputs, op)
    values = [(array.view("uint16").astype("uint32") << 16).view("float32") for array in inputs]
    return _to_bfloat16(oracle.reduce_elements(values, op, rounding=oracle.bfloat16))


def _to_bfloat16(values: Array) -> Array:
    bits = np.asarray(oracle.bfloat16(values)).view("uint32")
    return np.asarray(bits >> 16, "uint16").view(ENCODED["bfloat16"])
