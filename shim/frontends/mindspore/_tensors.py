"""Tensors of any kind: their shapes, zeros of the same kind, and tensors to receive into, of a shape and dtype that the caller names."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from shim.core.callers import Caller
from shim.core.tensors import framework_of, new_like
from shim.errors import TensorError, UnsupportedError
from shim.frontends.mindspore._errors import ArgumentTypeError

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


class EmptyTensor(NamedTuple):
    """A dtype, of MindSpore or of another framework, and a shape."""

    dtype: Any
    shape: tuple[int, ...]

    @staticmethod
    def checked(caller: Caller, parameter: str, dtype: Any) -> Any:
        """Return *dtype*, which must be one of a framework."""
        is_class = isinstance(dtype, type)
        if not framework_of(dtype if is_class else type(dtype)) or (not is_class and hasattr(dtype, "tolist")):
            raise caller.explain(ArgumentTypeError(f"{parameter} must be a dtype, got {type(dtype).__name__}"))
        return dtype

    def like(self, *tensors: Any) -> Any:
        """Return a new tensor: MindSpore's for one of MindSpore's dtypes if *tensors* are, and NumPy's otherwise.

        A kernel of a compiled graph gets NumPy's arrays and must not make tensors of MindSpore's.
        """
        framework = framework_of(self.dtype if isinstance(self.dtype, type) else type(self.dtype))
        if framework == "torch":
            return sys.modules["torch"].empty(self.shape, dtype=self.dtype)
        if framework == "paddle":
            return sys.modules["paddle"].empty(list(self.shape), self.dtype)
        numpy: Any = sys.modules["numpy"]
        if framework == "numpy":
            return numpy.empty(self.shape, self.dtype)
        array = numpy.empty(self.shape, sys.modules["mindspore"].dtype_to_nptype(self.dtype))
        return self.as_asked(array) if any(framework_of(type(each)) == "mindspore" for each in tensors) else array

    def as_asked(self, output: Any) -> Any:
        """Return *output*, of ``like``, as a tensor of the framework that the dtype is of."""
        if framework_of(type(self.dtype)) == "mindspore" and framework_of(type(output)) == "numpy":
            return sys.modules["mindspore"].Tensor.from_numpy(output)
        return output


def _made_shape(primitive: Any, *_shapes: Any) -> Any:
    return primitive.new.shape


def _made_dtype(primitive: Any, *_dtypes: Any) -> Any:
    return primitive.new.dtype


# For a primitive whose output is as it was made with, whatever the inputs: its attribute ``new``.
made_shape, made_dtype = _made_shape, _made_dtype
