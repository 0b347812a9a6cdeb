"""Objects that describe memory by DLPack, rightly or not; and tensors that are said to be on a device, although they are not."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from dlpack_structures import DLTensor, ManagedTensor, capsule_of

FLOAT = 2
_CUDA = 2


class Described:
    """An object whose ``__dlpack__`` describes four floats, or *memory*, but for what the fields say."""

    def __init__(
        self, shape: Any = (4,), strides: Any = None, major: int = 1, memory: Any = None, **fields: Any
    ) -> None:
        self.memory = np.ones(4, "float32") if memory is None else memory
        self._shape, self._strides = (self._kept(numbers) for numbers in (shape, strides))
        usual = {"data": self.memory.ctypes.data, "device_type": 1, "code": FLOAT, "bits": 32, "lanes": 1}
        usual |= {"ndim": len(shape or ()), "shape": self._shape, "strides": self._strides}
        self._managed = ManagedTensor(major, 0, None, None, 0, DLTensor(**{**usual, **fields}))

    @staticmethod
    def _kept(numbers: Any) -> Any:
        return (
            None if numbers is None else ctypes.cast((ctypes.c_int64 * max(1, len(numbers)))(*numbers), ctypes.c_void_p)
        )

    def __dlpack__(self, **keywords: object) -> Any:
        return capsule_of(self._managed, b"dltensor_versioned")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self._managed.tensor.device_type, self._managed.tensor.device_id)


class OnDevice(Described):
    """A float32 tensor with the elements of *array* that says it is on CUDA device *number*: no engine may touch them on the host."""

    def __init__(self, array: Any, number: int = 0, device_type: int = _CUDA) -> None:
        memory = np.asarray(array, "float32")
        strides = tuple(stride // 4 for stride in memory.strides)
        super().__init__(memory.shape, strides, memory=memory, device_type=device_type, device_id=number)
        self.shape = memory.shape
