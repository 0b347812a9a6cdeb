"""DLPack's structures, and the capsules in which Python passes them."""

from __future__ import annotations

import ctypes
from typing import Any


class DLTensor(ctypes.Structure):
    _fields_ = (
        *(("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)),
        *(("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)),
        *(("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)),
    )


class ManagedTensor(ctypes.Structure):
    _fields_ = (
        *(("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)),
        *(("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", DLTensor)),
    )


_names: dict[bytes, Any] = {}  # kept: a capsule does not
# A function of our own: frameworks give ctypes.pythonapi's other types of arguments.
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, *(ctypes.c_void_p,) * 3)(("PyCapsule_New", ctypes.pythonapi))


def capsule_of(structure: ctypes.Structure, name: bytes) -> Any:
    """Return a capsule called *name* of *structure*, which has to outlive it."""
    kept = _names.setdefault(name, ctypes.create_string_buffer(name))
    return _new_capsule(ctypes.addressof(structure), ctypes.addressof(kept), None)
