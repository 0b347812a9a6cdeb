"""Tensors that DLPack describes as none can be: each is refused, by name, and nothing of its memory is touched."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.errors import TensorError

ME = Caller("test", input="tensor", output="tensor")
FLOAT, BOOL, FLOAT8 = 2, 6, 10
HUGE = 1 << 62


class _Tensor(ctypes.Structure):
    _fields_ = (
        *(("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)),
        *(("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)),
        *(("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)),
    )


class _Managed(ctypes.Structure):
    _fields_ = (
        *(("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)),
        *(("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor)),
    )


class Described:
    """An object whose ``__dlpack__`` describes four floats, but for what the fields say."""

    def __init__(self, shape: Any = (4,), strides: Any = None, major: int = 1, **fields: Any) -> None:
        self.memory = np.ones(4, "float32")
        self._shape, self._strides = (self._kept(numbers) for numbers in (shape, strides))
        usual = {"data": self.memory.ctypes.data, "device_type": 1, "code": FLOAT, "bits": 32, "lanes": 1}
        usual |= {"ndim": len(shape or ()), "shape": self._shape, "strides": self._strides}
        self._managed = _Managed(major, 0, None, None, 0, _Tensor(**{**usual, **fields}))

    @staticmethod
    def _kept(numbers: Any) -> Any:
        return (
            None if numbers is None else ctypes.cast((ctypes.c_int64 * max(1, len(numbers)))(*numbers), ctypes.c_void_p)
        )

    def __dlpack__(self, **keywords: object) -> Any:
        new_capsule = ctypes.pythonapi.PyCapsule_New
        new_capsule.restype, new_capsule.argtypes = (
            ctypes.py_object,
            (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
        )
        return new_capsule(ctypes.addressof(self._managed), b"dltensor_versioned", None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.fixture(scope="module")
def alone() -> Iterator[ProcessGroup]:
    yield groups.enter_world(ME, "test", rank=0, world_size=1)
    groups.close_world()


def fill_with_two(group: ProcessGroup, tensor: Any, shape: tuple[int, ...] = (4,)) -> None:
    calls.all_reduce(ME, group, tensor, np.full(shape, 2, "float32"), ReduceOp.SUM).wait()


@pytest.mark.parametrize(
    "fields",
    [{}, {"strides": (1,)}, {"strides": (-1,), "byte_offset": 12}, {"shape": (2, 2), "strides": (1, 2)}],
    ids=str,
)
def test_what_is_well_described_is_read(alone: ProcessGroup, fields: dict[str, Any]) -> None:
    tensor = Described(**fields)
    fill_with_two(alone, tensor, fields.get("shape", (4,)))
    assert tensor.memory.tolist() == [2.0] * 4


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"major": 2}, "described by DLPack 2.0, and this project reads version 1"),
        ({"ndim": -1}, "has -1 dimensions"),
        ({"ndim": 1 << 30}, "at most 16 dimensions"),
        ({"shape": None, "ndim": 1}, "has dimensions, and no shape"),
        ({"shape": (-4,)}, "a dimension of -4 elements"),
        ({"shape": (2, -2)}, "a dimension of -2 elements"),
        ({"shape": (HUGE, 4)}, "than any memory has bytes"),
        ({"shape": (HUGE, 0, 4)}, "than any memory has bytes"),
        ({"shape": (2,), "strides": (HUGE,)}, "than any memory has bytes"),
        ({"shape": (2,), "strides": (-(1 << 63),)}, "than any memory has bytes"),
        ({"shape": (2, 2), "strides": (1 << 60, 1 << 60)}, "than any memory has bytes"),
        ({"data": None}, "has no memory"),
        ({"byte_offset": (1 << 64) - 1}, "begins 18446744073709551615 bytes behind its memory"),
        ({"lanes": 4}, "4 lanes"),
        ({"lanes": 0}, "0 lanes"),
        ({"bits": 31}, "31 bits"),
        ({"code": 99}, "type code 99"),
        ({"code": BOOL}, "type code 6, 32 bits"),
        ({"code": FLOAT8}, "type code 10, 32 bits"),
        ({"device_type": 2}, "on a device of DLPack type 2"),
        ({"device_type": -5}, "on a device of DLPack type -5"),
    ],
    ids=str,
)
def test_what_is_malformed_is_refused(alone: ProcessGroup, fields: dict[str, Any], told: str) -> None:
    tensor = Described(**fields)
    with pytest.raises(TensorError, match="test: tensor") as caught:
        fill_with_two(alone, tensor)
    assert told in str(caught.value)
    assert tensor.memory.tolist() == [1.0] * 4
