"""What torch requires of tensors before a collective, whatever it is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from shim.core.tensors import dtype_name, reader_for
from shim.errors import ArgumentError, TensorError
from shim.frontends.torch._errors import torch_function

COMPLEX_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def check_tensor(tensor: Any, name: str) -> None:
    """Raise unless *tensor*, called *name*, is one of any framework's."""
    try:
        if isinstance(tensor, (list, tuple)):
            raise TensorError("{role} must be a tensor")
        reader_for(type(tensor))
    except TensorError:
        raise torch_function("_check_single_tensor").explain(
            TensorError(f"{name} must be one tensor, got a {type(tensor).__qualname__}")
        ) from None


def check_tensors(tensors: Any, name: str) -> None:
    """Raise unless *tensors*, called *name*, is a list of tensors."""
    if not isinstance(tensors, list):
        raise torch_function("_check_tensor_list").explain(
            TensorError(f"{name} must be a list of tensors, got a {type(tensors).__qualname__}")
        )
    for place, one in enumerate(tensors):
        check_tensor(one, f"{name}[{place}]")


def check_one_dtype(tensors: Sequence[Any]) -> None:
    """Raise unless *tensors* have one dtype."""
    every = chain.from_iterable(one if isinstance(one, list) else (one,) for one in tensors)
    names = [dtype_name(one) for one in every]
    if len({COMPLEX_PARTS.get(name, name) for name in names}) > 1:
        raise torch_function("_ensure_all_tensors_same_dtype").explain(
            ArgumentError(f"all tensors must have one dtype, got {', '.join(names)}")
        )
