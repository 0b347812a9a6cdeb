"""Tensors of any framework as arrays, and whether what two programs computed is the same."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Return *value* with copies as arrays in place of tensors, also within lists and mappings, and names in place of dtypes."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return value.copy()
    if hasattr(value, "asnumpy"):
        return np.array(value.asnumpy())
    if hasattr(value, "numpy"):
        return np.array(value.numpy())
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value).rpartition(".")[2].lower()  # a dtype: torch.int32, paddle.int32, Int32


def is_same(found: Any, expected: Any, within: float) -> bool:
    """Tell whether both have the same structure, and arrays of the same shape and dtype whose numbers differ by *within* at most."""
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(found) == len(expected)
            and all(map(is_same, found, expected, repeat(within)))
        )
    if isinstance(expected, dict):
        return isinstance(found, dict) and is_same([*found.items()], [*expected.items()], within)
    if isinstance(expected, tuple):
        return isinstance(found, tuple) and is_same([*found], [*expected], within)
    if isinstance(expected, np.ndarray):
        are_alike = isinstance(found, np.ndarray) and (found.shape, found.dtype) == (expected.shape, expected.dtype)
        return are_alike and np.allclose(found, expected, within, within, equal_nan=True)
    return bool(found == expected)
