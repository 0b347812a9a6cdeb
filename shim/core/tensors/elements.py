"""Bytes of a dtype, as engines hand them to each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DEVICE_MESSAGE = (
    "device message"  # the dtype of bytes that tell of a message on a device, which no tensor of a program's has
)


@dataclass(frozen=True)
class Elements:
    """Consecutive elements of *dtype* in *memory*, a tensor of one dimension for any engine."""

    memory: memoryview
    dtype: str

    @property
    def address(self) -> int:
        return int(np.frombuffer(self.memory, np.uint8).ctypes.data) if len(self.memory) else 0

    @property
    def count(self) -> int:
        from shim._native import dtype_bytes  # here, so that readers can be imported where the native module is missing

        return len(self.memory) // dtype_bytes(self.dtype)
