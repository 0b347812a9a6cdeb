"""Shapes of tensors of any kind, and zeros of the same kind."""

from __future__ import annotations

import sys
from typing import Any

from shim.core.tensors import framework_of, new_like
from shim.errors import TensorError, UnsupportedError

__all__ = ["Shape", "shape_of", "zeros"]

Shape = tuple[int, ...]


def shape_of(tensor: Any) -> Shape:
    """Return the shape of *tensor*, from which a gradient must not be asked unless it is MindSpore's.

    Raises TensorError for what is no tensor, UnsupportedError for one of torch's or Paddle's that requires a gradient.
    """
    framework = framework_of(type(tensor))
    if not framework:
        raise TensorError(f"{{input}} must be a tensor, got {type(tensor).__name__}")
    if (framework == "torch" and tensor.requires_grad) or (framework == "paddle" and not tensor.stop_gradient):
        raise UnsupportedError("{input} requires a gradient, which only MindSpore's tensors get\nPass tensor.detach().")
    return tuple(tensor.shape)


def zeros(tensor: Any, shape: Shape) -> Any:
    """Return a new tensor like *tensor*, of *shape*, that holds zeros."""
    if framework_of(type(tensor)) == "mindspore":
        return sys.modules["mindspore"].mint.zeros(shape, dtype=tensor.dtype)
    output = new_like(tensor, shape)
    output[...] = 0
    return output
