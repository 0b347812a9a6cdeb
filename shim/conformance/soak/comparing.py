"""Comparison bit by bit."""

from __future__ import annotations

import numpy as np

from shim.conformance.oracle import Array

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
