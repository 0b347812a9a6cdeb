"""CUDA tensors of torch and arrays of CuPy, all on the first GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class OnGpu(NamedTuple):
    """*make* returns a tensor with the elements of an array, *values* an array with a tensor's; dtypes *without* which it has none."""

    make: Callable[[Any], Any]
    values: Callable[[Any], Any]
    without: tuple[str, ...] = ()


def _torch_make(array: Any) -> Any:
    import torch

    if array.dtype.name in _AS_INTEGERS:
        integers = array.view(_AS_INTEGERS[array.dtype.name]).copy()
        return torch.from_numpy(integers).view(getattr(torch, array.dtype.name)).cuda()
    return torch.from_numpy(array.copy()).cuda()


def _torch_values(tensor: Any) -> Any:
    import torch

    name = str(tensor.dtype).removeprefix("torch.")
    if name in _AS_INTEGERS:
        import ml_dtypes

        return tensor.cpu().view(getattr(torch, _AS_INTEGERS[name])).numpy().view(getattr(ml_dtypes, name))
    return tensor.cpu().numpy()


_AS_INTEGERS = {"bfloat16": "int16", "float8_e4m3fn": "int8", "float8_e5m2": "int8"}


def _cupy_make(array: Any) -> Any:
    import cupy

    return cupy.asarray(np.ascontiguousarray(array))


KINDS = {
    "torch": OnGpu(_torch_make, _torch_values),
    "cupy": OnGpu(_cupy_make, lambda array: array.get(), tuple(_AS_INTEGERS)),
}
