"""The kinds of tensor that cases run with, and which are chosen; a framework is imported when its tensors are first asked for."""

from __future__ import annotations

import importlib
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shim.conformance.oracle import Array
from shim.frontends.mindspore._groups.numpy_versions import take_first_error

UNWRITTEN = 99  # no example's result holds it


class TensorKind(ABC):
    """Makes and reads tensors of one framework. Creating it imports the framework."""

    name: str

    def __init__(self) -> None:
        self.module = importlib.import_module(self.name)

    @property
    def version(self) -> str:
        return str(self.module.__version__)

    @abstractmethod
    def make(self, array: Array) -> Any:
        """Return a new tensor with the dtype, shape and elements of *array*."""

    @abstractmethod
    def split(self, tensor: Any, rows: Sequence[int]) -> list[Any]:
        """Return *tensor* in parts of so many rows, views of it where the framework splits into views."""

    @abstractmethod
    def read(self, tensor: Any) -> Array:
        """Return a copy of *tensor*'s elements."""

    def blank(self, shape: Sequence[int], dtype: str) -> Any:
        """Return a tensor to be written, filled with a value that no result has."""
        return self.make(np.full(shape, UNWRITTEN, dtype))


class _Numpy(TensorKind):
    name = "numpy"

    def make(self, array: Array) -> Any:
        return array.copy()

    def split(self, tensor: Any, rows: Sequence[int]) -> list[Any]:
        return list(np.split(tensor, np.cumsum(rows)[:-1]))

    def read(self, tensor: Any) -> Array:
        if not isinstance(tensor, np.ndarray):
            raise TypeError(f"a numpy array was expected, {type(tensor).__name__} seen")
        return tensor.copy()


class _Torch(TensorKind):
    name = "torch"

    def make(self, array: Array) -> Any:
        return self.module.from_numpy(array.copy())

    def split(self, tensor: Any, rows: Sequence[int]) -> list[Any]:
        return list(tensor.split(list(rows)))

    def read(self, tensor: Any) -> Array:
        return np.array(tensor.detach().numpy())


class _Paddle(TensorKind):
    name = "paddle"

    def make(self, array: Array) -> Any:
        return self.module.to_tensor(array)

    def split(self, tensor: Any, rows: Sequence[int]) -> list[Any]:
        return list(self.module.split(tensor, list(rows)))

    def read(self, tensor: Any) -> Array:
        return np.array(tensor.numpy())


class _MindSpore(TensorKind):
    name = "mindspore"

    def __init__(self) -> None:
        super().__init__()
        take_first_error()

    def make(self, array: Array) -> Any:
        return self.module.Tensor(array)

    def split(self, tensor: Any, rows: Sequence[int]) -> list[Any]:
        return list(self.module.mint.split(tensor, list(rows)))

    def read(self, tensor: Any) -> Array:
        return np.array(tensor.asnumpy())


_ADAPTERS: dict[str, type[TensorKind]] = {kind.name: kind for kind in (_Numpy, _Torch, _Paddle, _MindSpore)}
KINDS = tuple(_ADAPTERS)


def is_installed(name: str) -> bool:
    """Tell whether the framework can be found, without importing it; a folder that happens to have its name is none."""
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin is not None


def kind_named(name: str) -> TensorKind:
    """Import the framework *name* and return its kind of tensor."""
    return _ADAPTERS[name]()


@dataclass(frozen=True)
class Selection:
    """Which kinds of tensor run: ``missing`` ones were asked for and are not installed, ``absent`` ones were not asked for."""

    present: tuple[str, ...]
    missing: tuple[str, ...]
    absent: tuple[str, ...]

    @property
    def narrowed(self) -> bool:
        """Tell whether some kinds were left out on purpose."""
        return len(self.present) + len(self.missing) + len(self.absent) < len(KINDS)


def select_kinds(requested: Sequence[str] | None) -> Selection:
    """Return what to run: the *requested* kinds, or, with None, all that are installed."""
    wanted = KINDS if requested is None else tuple(kind for kind in KINDS if kind in requested)
    present = tuple(kind for kind in wanted if is_installed(kind))
    away = tuple(kind for kind in wanted if kind not in present)
    return Selection(present, () if requested is None else away, away if requested is None else ())
