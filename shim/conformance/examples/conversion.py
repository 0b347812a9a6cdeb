"""A tensor of one kind as a tensor of another, over the same memory where both frameworks can do that, else as a copy.

All goes through NumPy's arrays: an array over a tensor's memory, and a tensor over an array's. A dtype that NumPy has not is
carried as an integer of its size.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from shim.conformance.oracle import Array
from shim.core.tensors import dtype_name
from shim.frontends.mindspore._gradients.recording import belongs

# The beginnings of the dtypes that a kind of tensor has not.
LACKING: Mapping[str, tuple[str, ...]] = {
    "numpy": ("bfloat16", "float8"),
    "torch": (),
    "paddle": ("uint16", "uint32", "uint64"),
    "mindspore": ("float8",),
}
GRADIENT = "a gradient is taken through a tensor that goes to the frontend, and ends at another kind's"


class InapplicableError(BaseException):
    """An example cannot be run with another kind of tensor; no example's own ``except`` is to catch it."""


def is_a(thing: Any, kind: str) -> bool:
    """Tell whether *thing* is a tensor of *kind*, whose framework need not be loaded."""
    module = sys.modules.get(kind)
    return module is not None and isinstance(thing, module.ndarray if kind == "numpy" else module.Tensor)


def as_kind(tensor: Any, kind: str) -> Any:
    """Return *tensor* as one of *kind*. Raises InapplicableError for what *kind* has not."""
    if _has_gradient(tensor):
        raise InapplicableError(GRADIENT)
    dtype = dtype_name(tensor)
    if dtype.startswith(LACKING[kind]):
        raise InapplicableError(f"{kind} has no {dtype}")
    return _MAKERS[kind](array_over(tensor), dtype)


def dtype_as(thing: Any, own: str, kind: str) -> Any:
    """Return the dtype of *kind* that is called as *thing* is, a dtype of *own*; None where it is none."""
    module: Any = sys.modules.get(own)
    dtypes = getattr(module, _DTYPES.get(own, "dtype"), None)
    if not isinstance(dtypes, type) or not isinstance(thing, dtypes):
        return None
    name = str(thing).rpartition(".")[2].lower()
    if name.startswith(LACKING[kind]):
        raise InapplicableError(f"{kind} has no {name}")
    if kind == "numpy":
        return np.dtype(name)
    return getattr(sys.modules[kind], "bool_" if (kind, name) == ("mindspore", "bool") else name)


def shares_memory(tensor: Any, other: Any) -> bool:
    """Tell whether the elements of both tensors, which are as many, lie at the same place."""
    a, b = array_over(tensor), array_over(other)
    return a.size == 0 or (a.ctypes.data == b.ctypes.data and a.strides == b.strides) or _is_one(a, b)


def _is_one(a: Array, b: Array) -> bool:
    return a.size == 1 and a.ctypes.data == b.ctypes.data  # whatever its strides say


def array_over(tensor: Any) -> Array:
    """Return an array over the memory of *tensor*, which has to live as long as it is used."""
    if isinstance(tensor, np.ndarray):
        return tensor
    if getattr(tensor, "has_init", False):  # a lazy one of MindSpore's
        tensor.init_data()
    dtype = _stored_as(dtype_name(tensor))
    shape = tuple(tensor.shape)
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = tuple(tensor.stride() if hasattr(tensor, "stride") else tensor.strides)
    extent = sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True)) + 1
    memory = (ctypes.c_ubyte * (extent * dtype.itemsize)).from_address(tensor.data_ptr())
    return np.ndarray(shape, dtype, memory, strides=tuple(stride * dtype.itemsize for stride in strides))


def _stored_as(dtype: str) -> np.dtype[Any]:
    if dtype.startswith("bfloat16"):
        return np.dtype("uint16")
    return np.dtype("uint8" if dtype.startswith("float8") else dtype)


_DTYPES = {"mindspore": "Type"}  # what dtypes are instances of, where that is not called dtype


def _has_gradient(tensor: Any) -> bool:
    if is_a(tensor, "torch"):
        return bool(tensor.requires_grad and sys.modules["torch"].is_grad_enabled())
    if is_a(tensor, "paddle"):
        return bool(not tensor.stop_gradient and sys.modules["paddle"].is_grad_enabled())
    return belongs(tensor)


def _torch(array: Array, dtype: str) -> Any:
    torch = sys.modules["torch"]
    return torch.from_numpy(array).view(getattr(torch, dtype))


def _paddle(array: Array, dtype: str) -> Any:
    paddle = sys.modules["paddle"]
    if array.size == 0:
        return paddle.empty(list(array.shape), dtype)
    if dtype == "bfloat16":
        return paddle.from_dlpack(array.view("int16")).view("bfloat16")
    return paddle.from_dlpack(array)


def _mindspore(array: Array, dtype: str) -> Any:
    mindspore = sys.modules["mindspore"]
    if dtype == "bfloat16":
        return mindspore.Tensor.from_numpy(array).view(mindspore.bfloat16)
    return mindspore.Tensor.from_numpy(array)


_MAKERS: Mapping[str, Callable[[Array, str], Any]] = {
    "numpy": lambda array, dtype: array,
    "torch": _torch,
    "paddle": _paddle,
    "mindspore": _mindspore,
}
