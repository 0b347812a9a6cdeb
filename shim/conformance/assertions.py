"""Comparisons that raise an AssertionError which says what differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from shim.conformance.oracle import Array

_Returned = TypeVar("_Returned")


def assert_same_arrays(seen: Sequence[Array], expected: Sequence[Array]) -> None:
    """Raise unless both hold the same number of arrays and these are the same, one by one."""
    if len(seen) != len(expected):
        raise AssertionError(f"{len(expected)} tensors were expected, {len(seen)} seen")
    for position, (here, there) in enumerate(zip(seen, expected, strict=True)):
        try:
            assert_same_array(here, there)
        except AssertionError as difference:
            raise AssertionError(f"tensor {position}: {difference}") from None


def assert_same_array(seen: Array, expected: Array) -> None:
    """Raise unless dtype, shape and every element are equal; a NaN equals a NaN."""
    if seen.dtype != expected.dtype:
        raise AssertionError(f"dtype {expected.dtype} was expected, {seen.dtype} seen")
    if seen.shape != expected.shape:
        raise AssertionError(f"shape {expected.shape} was expected, {seen.shape} seen")
    differs = (seen != expected) & ~((seen != seen) & (expected != expected))
    if np.any(differs):
        first = tuple(int(i) for i in np.argwhere(differs)[0])
        raise AssertionError(
            f"{np.count_nonzero(differs)} of {seen.size} elements differ, the first at {list(first)}: "
            f"{expected[first]} was expected, {seen[first]} seen"
        )


def assert_is_none(returned: object) -> None:
    """Raise unless a call returned None."""
    if returned is not None:
        raise AssertionError(f"None was expected, {returned!r} returned")


def assert_returned(returned: _Returned | None) -> _Returned:
    """Return what a call returned; raise if that is None."""
    if returned is None:
        raise AssertionError("None was returned, where something to wait for was expected")
    return returned


def assert_raises(
    kinds: type[BaseException] | tuple[type[BaseException], ...],
    function: Callable[..., object],
    *args: Any,
    **named: Any,
) -> BaseException:
    """Call *function* and return the error it raises; raise unless that is one of *kinds*."""
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    names = " or ".join(kind.__name__ for kind in wanted)
    try:
        returned = function(*args, **named)
    except wanted as error:
        return error
    except Exception as error:
        raise AssertionError(f"{names} was expected, {type(error).__name__} raised: {error}") from error
    raise AssertionError(f"{names} was expected, nothing raised: {returned!r} returned")


def assert_that(condition: bool, otherwise: str) -> None:
    """Raise with the message *otherwise* unless *condition* holds; unlike the statement, also under python -O."""
    if not condition:
        raise AssertionError(otherwise)
