"""New tensors of any framework, like one that is there."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any

from shim.core.tensors.readers import describe_mindspore, framework_of, name_of_mindspore_dtype
from shim.errors import TensorError

__all__ = ["copy_of", "memory_like", "new_like", "tensor_of"]


def new_like(tensor: Any, shape: Sequence[int] | None = None) -> Any:
    """Return a new, uninitialised tensor of *tensor*'s kind and dtype, with its shape or another one."""
    framework = framework_of(type(tensor))
    if framework in _MAKERS:
        return _MAKERS[framework](tensor, tuple(tensor.shape if shape is None else shape))
    raise TensorError(f"cannot make a new tensor like a {type(tensor).__qualname__}")


def _new_numpy(array: Any, shape: tuple[int, ...]) -> Any:
    return sys.modules["numpy"].empty(shape, array.dtype)


def _new_torch(tensor: Any, shape: tuple[int, ...]) -> Any:
    return tensor.detach().new_empty(shape)


def _new_paddle(tensor: Any, shape: tuple[int, ...]) -> Any:
    return sys.modules["paddle"].empty(list(shape), tensor.dtype)


def _new_mindspore(tensor: Any, shape: tuple[int, ...]) -> Any:
    return tensor_of(_memory_for_mindspore(tensor, shape), tensor)


def memory_like(tensor: Any, shape: tuple[int, ...]) -> Any:
    """Return memory for a new tensor of *tensor*'s kind and dtype: an array for one of MindSpore's, which the engine reads sooner."""
    if framework_of(type(tensor)) == "mindspore":
        return _memory_for_mindspore(tensor, shape)
    return new_like(tensor, shape)


def tensor_of(memory: Any, like: Any) -> Any:
    """Return *memory*, of ``memory_like``, as a tensor of the kind of *like*."""
    if type(memory) is type(like) or framework_of(type(like)) != "mindspore" or framework_of(type(memory)) != "numpy":
        return memory
    return sys.modules["mindspore"].Tensor.from_numpy(memory)


def _new_cupy(array: Any, shape: tuple[int, ...]) -> Any:
    with array.device:  # CuPy would take the current one
        return sys.modules["cupy"].empty(shape, array.dtype)


def _memory_for_mindspore(tensor: Any, shape: tuple[int, ...]) -> Any:
    """Return an array to lend: ``mint.empty`` is an operator, for whose thread the engine would wait a millisecond."""
    dtype = tensor.dtype
    if id(dtype) not in _ARRAY_DTYPES:
        _ARRAY_DTYPES[id(dtype)] = (dtype, _array_dtype_of(dtype))
    of_array = _ARRAY_DTYPES[id(dtype)][1]
    if of_array is None:
        return sys.modules["mindspore"].mint.empty(shape, dtype=dtype)
    return sys.modules["numpy"].empty(shape, of_array)


# numpy's dtype for each of MindSpore's, which are single objects and are kept alive here: to hash one takes longer.
_ARRAY_DTYPES: dict[int, tuple[Any, Any]] = {}


def _array_dtype_of(dtype: Any) -> Any:
    """Return numpy's dtype for MindSpore's *dtype*, None for float8. (MindSpore's own function logs with every call.)"""
    try:
        found = sys.modules["numpy"].dtype(name_of_mindspore_dtype(dtype))
        if found.isbuiltin == 1:  # not one that ml_dtypes has added, of which MindSpore knows nothing
            return found
    except TypeError:
        pass
    try:
        return sys.modules["mindspore"].dtype_to_nptype(dtype)  # bfloat16, for which MindSpore has a dtype of its own
    except KeyError:
        return None


_MAKERS: dict[str, Callable[[Any, tuple[int, ...]], Any]] = {
    "numpy": _new_numpy,
    "torch": _new_torch,
    "paddle": _new_paddle,
    "mindspore": _new_mindspore,
    "cupy": _new_cupy,
}


def copy_of(tensor: Any) -> Any:
    """Return a new tensor of *tensor*'s kind with its elements, of which nothing knows how to take the gradient."""
    framework = framework_of(type(tensor))
    if framework in _COPIERS:
        return _COPIERS[framework](tensor)
    raise TensorError(f"cannot copy a {type(tensor).__qualname__}")


def _copy_mindspore(tensor: Any) -> Any:
    """Copy without an operator where the elements lie together; ``copy()`` of a Parameter would be a Parameter."""
    copied = new_like(tensor)
    if not tensor.is_contiguous():
        return copied.copy_(tensor)
    source = describe_mindspore(tensor)
    ctypes.memmove(copied.data_ptr(), source.address, tensor.nbytes)
    return copied


def _copy_cupy(array: Any) -> Any:
    with array.device:
        return array.copy()


_COPIERS: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda array: array.copy(),
    "torch": lambda tensor: tensor.detach().clone(),
    "paddle": lambda tensor: tensor.detach().clone(),
    "mindspore": _copy_mindspore,
    "cupy": _copy_cupy,
}
