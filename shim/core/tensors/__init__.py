"""Any framework's tensor: how an engine reads it, and how to make another one like it."""

from __future__ import annotations

from shim.core.tensors.new_tensors import copy_of, memory_like, new_like, tensor_of
from shim.core.tensors.readers import (
    Access,
    Description,
    Guard,
    InPlace,
    Reader,
    dtype_name,
    framework_of,
    reader_for,
)

__all__ = [
    "Access",
    "Description",
    "Guard",
    "InPlace",
    "Reader",
    "copy_of",
    "dtype_name",
    "framework_of",
    "memory_like",
    "new_like",
    "reader_for",
    "tensor_of",
]
