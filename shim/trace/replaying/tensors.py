"""Made-up tensors: zeros of any shape and dtype, in memory that all calls of a rank share."""

from __future__ import annotations

from importlib import import_module
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from shim._native import dtype_bytes
from shim.errors import TensorError, UnsupportedError
from shim.trace.calls import Shape, Tensors
from shim.trace.replaying.plan import cut_group


class MadeUp:
    """Gives the tensors of recorded calls, for a replay on the first *size* ranks. Values are of no interest, so all calls use the same memory."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._memory = {"outputs": np.zeros(0, np.uint8), "inputs": np.zeros(0, np.uint8)}

    def tensors(self, shape: Shape, role: str) -> Any:
        """Return what the call gets as its *role*, outputs or inputs: of the form that was recorded, or without the parts of absent ranks."""
        given: Tensors | None = getattr(shape, role)
        if given is None:
            return None
        if given.unreadable:
            raise TensorError(given.unreadable)
        ranks, parts = shape.group.ranks, shape.parts(role)
        kept = cut_group(ranks, self._size)
        if len(kept) == len(ranks) or len(parts) != len(ranks) or (len(parts) == 1 and not given.is_list):
            made = self._views(role, given.tensors)
            return made if given.is_list else made[0]
        dtype = given.tensors[0][0]
        return self._views(role, tuple((dtype, (parts[ranks.index(rank)],)) for rank in kept))

    def _views(self, role: str, tensors: tuple[tuple[str, tuple[int, ...]], ...]) -> list[Any]:
        sizes = [prod(shape) * dtype_bytes(dtype) for dtype, shape in tensors]
        ends = list(accumulate(-(-size // 64) * 64 for size in sizes))
        if ends and ends[-1] > len(self._memory[role]):
            self._memory[role] = np.zeros(ends[-1], np.uint8)
        memory = self._memory[role]
        starts = [0, *ends[:-1]]
        return [
            memory[start : start + size].view(_dtype(dtype)).reshape(shape)
            for start, size, (dtype, shape) in zip(starts, sizes, tensors, strict=False)
        ]


def _dtype(name: str) -> Any:
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        return np.dtype(getattr(import_module("ml_dtypes"), name))
    except (ImportError, AttributeError):
        raise UnsupportedError(
            f"there is no made-up tensor of dtype {name} without ml_dtypes\nInstall ml_dtypes: python3 -m pip install ml_dtypes"
        ) from None
