"""Tensors of four kinds whose values a rank knows of every other rank, and what the program that compares them has found."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Values = npt.NDArray[np.float64]
FAILURES: list[str] = []
_PERIOD = 13  # values are below: what four ranks' factors make of their sum is exact in bfloat16
_CLOSE = 2.0**-7  # of an average of three ranks


@dataclass(frozen=True)
class Kind:
    """Tensors of one dtype: how they are made of values."""

    name: str
    width: int  # bytes of an element
    made: Callable[[Values], Any]


KINDS = (
    Kind("float32", 4, lambda values: values.astype(np.float32)),
    Kind("int64", 8, lambda values: values.astype(np.int64)),
    Kind("bfloat16", 2, lambda values: torch.from_numpy(values).to(torch.bfloat16)),
    Kind("float16", 2, lambda values: torch.from_numpy(values).to(torch.float16)),
)


@functools.cache
def _pattern(count: int) -> Values:
    return np.arange(count, dtype=np.float64) % _PERIOD


def known(rank: int, count: int, turn: int = 0) -> Values:
    """Return the *count* values that *rank* has in this *turn*: other ones on every rank and at every place."""
    return (_pattern(count) * (rank + 1) + rank + turn) % _PERIOD


def reading(tensor: Any) -> Values:
    """Return the values of *tensor*."""
    if isinstance(tensor, torch.Tensor):
        return tensor.to(torch.float64).numpy()
    return np.asarray(tensor, np.float64)


def expect(what: str, seen: Any, expected: Any) -> None:
    """Note a failure where *seen* differs from *expected*: tensors by their values, other things by equality."""
    if isinstance(expected, np.ndarray):
        values = reading(seen)
        if values.shape != expected.shape or not np.allclose(values, expected, rtol=_CLOSE, atol=0.0):
            differ = np.flatnonzero(values != expected) if values.shape == expected.shape else []
            at = f", first at {differ[0]}" if len(differ) else ""
            FAILURES.append(f"{what}: {values.ravel()[:8]} where {expected.ravel()[:8]} were expected{at}")
    elif seen != expected:
        FAILURES.append(f"{what}: {seen!r} where {expected!r} was expected")
