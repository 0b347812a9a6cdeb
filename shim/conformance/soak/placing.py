"""Where a tensor lies: plainly, strided, backwards, unaligned or in shared memory, with memory around it that nobody may touch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import shim
from shim.conformance.oracle import Array
from shim.conformance.soak.draw import Draw

WAYS = ("plain", "plain", "strided", "backwards", "unaligned", "shared", "shared")
_AROUND = 3  # elements before and behind


@dataclass(frozen=True)
class Placed:
    """A tensor of one dimension, and the bytes in which it lies, zeros outside it."""

    tensor: Array
    memory: Array

    def is_intact_outside(self) -> bool:
        """Tell whether the bytes outside are as they were. Sets the tensor to zero."""
        self.tensor[...] = np.zeros((), self.tensor.dtype)
        return not self.memory.any()


def place(draw: Draw, array: Array) -> Placed:
    """Return a copy of *array* in a place of *draw*'s choice."""
    way = draw.one(WAYS)
    item = array.dtype.itemsize
    room = array.size * (3 if way == "strided" else 1) + 2 * _AROUND
    if way == "shared":
        memory = shim.empty(room * item, "uint8")
        memory[:] = 0
    else:
        memory = np.zeros(room * item + (way == "unaligned"), np.uint8)
    inside = memory[-(room - _AROUND) * item : -_AROUND * item].view(array.dtype)
    if way == "strided":
        inside = inside[::3]
    elif way == "backwards":
        inside = inside[::-1]
    inside[...] = array
    return Placed(inside, memory)
