"""Tensors in memory that the other ranks can read where it is: a sealed memory file of its own for each.

The engine finds out by address that a tensor lies in such memory, whichever framework it belongs to and whichever part of it
it is. Frameworks are lent the memory by objects that keep it alive, and given a view of the right dtype and shape.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import operator
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from shim._native import SharedMemory, dtype_bytes
from shim.core.tensors import dtype_name, framework_of
from shim.errors import ArgumentError, EngineError, OutOfMemoryError, StateError, UnsupportedError

_MOST_DIMENSIONS = 16  # that the engine carries


def new_shared(shape: int | Sequence[int], dtype: Any, like: Any) -> Any:
    """Return a zeroed tensor; see ``shim.empty``."""
    extents = _extents(shape)
    framework = _framework(like)
    name = _dtype(dtype, like, math.prod(extents))
    # Frameworks do not take memory without bytes; nothing of it will ever be read.
    size = max(1, math.prod(extents)) * dtype_bytes(name)
    if math.prod(filter(None, extents)) * dtype_bytes(name) > sys.maxsize:  # frameworks count so too
        raise ArgumentError(f"shim.empty: shape {shape!r} has more elements than any memory")
    memory = _lent_memory(size)
    try:
        tensor = _MAKERS[framework](memory, name, extents)
    except (AttributeError, TypeError, ValueError) as error:  # each framework has its own way to say so
        raise _unsupported(framework, name) from error
    if dtype_name(tensor) != name:  # to Paddle, uint16 is another name of bfloat16
        raise _unsupported(framework, name)
    return tensor


def _unsupported(framework: str, name: str) -> UnsupportedError:
    return UnsupportedError(f"shim.empty: {framework} cannot make a {name} tensor of given memory")


def _extents(shape: int | Sequence[int]) -> tuple[int, ...]:
    try:
        given: Sequence[Any] = shape if isinstance(shape, Sequence) and not isinstance(shape, bytes) else (shape,)
        extents = tuple(map(operator.index, given))
    except TypeError:
        raise ArgumentError(f"shim.empty: shape must be an integer or a sequence of them, got {shape!r}") from None
    if any(extent < 0 for extent in extents):
        raise ArgumentError(f"shim.empty: shape must not have negative extents, got {shape!r}")
    if len(extents) > _MOST_DIMENSIONS:
        raise ArgumentError(f"shim.empty: shape must have at most {_MOST_DIMENSIONS} dimensions, got {len(extents)}")
    return extents


def _framework(like: Any) -> str:
    known = ", ".join(_MAKERS)
    framework = "numpy" if like is None else like if isinstance(like, str) else framework_of(type(like))
    if framework not in _MAKERS:
        raise ArgumentError(f"shim.empty: like must be a tensor of, or the name of, one of {known}; got {like!r}")
    if framework == "numpy":
        importlib.import_module("numpy")
    if framework not in sys.modules:
        raise StateError(f"shim.empty: {framework} is not imported\nImport it before asking for its tensors.")
    return framework


def _dtype(dtype: Any, like: Any, elements: int) -> str:
    if dtype is None:
        if like is None or isinstance(like, str):
            if elements > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
                raise OutOfMemoryError(
                    f"shim.empty: {elements} elements of any dtype do not fit into the machine's memory"
                )
            raise ArgumentError("shim.empty: dtype must be given, unless like is a tensor that has one")
        name = dtype_name(like)
    elif isinstance(dtype, str):
        name = dtype
    elif isinstance(dtype, type):  # numpy.float32, numpy.bool_, and Python's own bool
        name = dtype.__name__.rstrip("_")
    else:
        name = str(dtype).rpartition(".")[2].lower()
    if dtype_bytes(name) == 0:
        raise ArgumentError(f"shim.empty: dtype must be one that the engine carries, such as float32, got {dtype!r}")
    return name


def _lent_memory(size: int) -> ctypes.Array[ctypes.c_char]:
    """Return *size* bytes as an object with a buffer, which every tensor made of it keeps alive."""
    try:
        owner = SharedMemory(size)
    except (EngineError, OutOfMemoryError) as error:  # of files, for one, or of memory
        raise type(error)(f"shim.empty: {error}") from None
    memory = (ctypes.c_char * size).from_address(owner.address())
    memory.owner = owner  # type: ignore[attr-defined]  # an instance of ctypes takes any attribute
    return memory


def _numpy_tensor(memory: Any, name: str, extents: tuple[int, ...]) -> Any:
    numpy = sys.modules["numpy"]
    try:
        dtype = numpy.dtype(name)
    except TypeError:
        if "ml_dtypes" not in sys.modules or not hasattr(sys.modules["ml_dtypes"], name):
            raise UnsupportedError(
                f"shim.empty: numpy has no {name} of its own\nInstall and import ml_dtypes, which adds it, or give `like`."
            ) from None
        dtype = numpy.dtype(getattr(sys.modules["ml_dtypes"], name))
    return numpy.ndarray(extents, dtype, memory)


def _torch_tensor(memory: Any, name: str, extents: tuple[int, ...]) -> Any:
    torch = sys.modules["torch"]
    flat = torch.frombuffer(memory, dtype=getattr(torch, name))
    return flat[: math.prod(extents)].view(extents)


def _paddle_tensor(memory: Any, name: str, extents: tuple[int, ...]) -> Any:
    # Paddle reads bfloat16, for one, of no array; but it takes another dtype's view of bytes.
    paddle = sys.modules["paddle"]
    bytes_of_it = paddle.utils.dlpack.from_dlpack(_numpy_tensor(memory, "uint8", (len(memory),)))
    flat = bytes_of_it if name == "uint8" else bytes_of_it.view(name)
    return flat[: math.prod(extents)].reshape(list(extents))


def _mindspore_tensor(memory: Any, name: str, extents: tuple[int, ...]) -> Any:
    return sys.modules["mindspore"].Tensor.from_numpy(_numpy_tensor(memory, name, extents))


_MAKERS: dict[str, Callable[[Any, str, tuple[int, ...]], Any]] = {
    "numpy": _numpy_tensor,
    "torch": _torch_tensor,
    "paddle": _paddle_tensor,
    "mindspore": _mindspore_tensor,
}
