"""Tensors that frameworks allocate themselves, and whether that is in memory which other ranks can read."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from shim import _native

MANY = 20_000  # elements of float32

of_every_framework = pytest.mark.parametrize(
    "framework", ["numpy", *(pytest.param(name, marks=pytest.mark.frameworks) for name in ("torch", "paddle"))]
)


def load(framework: str) -> Any:
    """Import a framework, MindSpore before Paddle: the other way round, they do not get along."""
    if framework == "paddle":
        importlib.import_module("mindspore")
    return importlib.import_module(framework)


def is_shared(tensor: Any) -> bool:
    address = tensor.ctypes.data if isinstance(tensor, np.ndarray) else tensor.data_ptr()
    size = tensor.nbytes if isinstance(tensor, np.ndarray) else tensor.numel() * tensor.element_size()
    return _native.is_shared(address, size)


def zeros(framework: str, count: int) -> Any:
    library = load(framework)
    dtype = library.float32
    return library.zeros([count], dtype=dtype)
