"""The kinds of tensor that cases run with, and which are chosen; a framework is imported when its tensors are first asked for.

numpy has no bfloat16 and no float8. An array of these holds the bits of its elements, in a dtype with one field that
is called like theirs: it can be cut, joined and compared like any other, and is never taken for one of integers.
"""

from __future__ import annotations

import importlib
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shim.conformance.oracle import Array
from shim.core.tensors import framework_of
from shim.frontends.mindspore._groups.numpy_versions import take_first_error
from shim.record.releases import version_there

UNWRITTEN = 99  # no example's result holds it
# The environment in which the frameworks keep their remarks on start-up to themselves, which would stand between the lines of a table.
QUIET = {"GLOG_v": "4", "GLOG_minloglevel": "2", "PYTHONWARNINGS": "ignore"}
_BITS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
ENCODED = {name: np.dtype([(name, bits)]) for name, bits in _BITS.items()}
_LACKS = {"numpy": frozenset(_BITS), "paddle": frozenset(("uint16", "uint32", "uint64"))}


def _lacks(kind: str) -> frozenset[str]:
    """Return the dtypes of which no tensors can be made on a CPU with the framework called *kind*, in the version that is installed."""
    without_float8 = {"paddle": "2.", "mindspore": "2.7."}
    lacks_it = kind in without_float8 and version_there(kind).startswith(without_float8[kind])
    return _LACKS.get(kind, frozenset()) | ({"float8_e4m3fn", "float8_e5m2"} if lacks_it else set())


class TensorKind(ABC):
    """Makes and reads tensors of one framework. Creating it imports the framework."""

    name: str

    def __init__(self) -> None:
        self.module = importlib.import_module(self.name)

    @property
    def version(self) -> str:
        return str(self.module.__version__)

    @abstractmethod
    def split(self, tensor: Any, rows: Sequence[int]) -> list[Any]:
        """Return *tensor* in parts of so many rows, views of it where the framework splits into views."""

    @abstractmethod
    def _make(self, array: Array) -> Any:
        """Return a new tensor of an array whose dtype numpy has."""

    @abstractmethod
    def _read(self, tensor: Any) -> Array:
        """Return a copy of the elements of a tensor whose dtype numpy has."""

    def _encoded(self, bits: Array, dtype: str) -> Any:
        """Return a new tensor of a *dtype* that numpy has not, whose elements are *bits*."""
        return self._make(bits).view(self.dtype(dtype))

    def _decoded(self, tensor: Any, bits: str) -> Array:
        """Return the elements of a *tensor* of a dtype that numpy has not, as integers of the dtype *bits*."""
        return self._read(tensor.view(self.dtype(bits)))

    def make(self, array: Array) -> Any:
        """Return a new tensor with the dtype, shape and elements of *array*."""
        if array.dtype.names is None:
            return self._make(array)
        [name] = array.dtype.names
        return self._encoded(array.view(_BITS[name]), name)

    def make_all(self, arrays: Iterable[Array]) -> list[Any]:
        """Return a new tensor for each array."""
        return [self.make(np.asarray(array)) for array in arrays]

    def blank(self, shape: Sequence[int], dtype: str = "float32") -> Any:
        """Return a tensor to be written, filled with a value that no result has."""
        bits = np.full(shape, UNWRITTEN, _BITS.get(dtype, dtype))
        return self.make(bits.view(ENCODED.get(dtype, bits.dtype)))

    def read(self, tensor: Any) -> Array:
        """Return a copy of *tensor*'s elements. Raises TypeError for what is no tensor of this kind."""
        if framework_of(type(tensor)) != self.name:
            raise TypeError(f"a tensor of {self.name} was expected, {type(tensor).__name__} seen")
        name = str(tensor.dtype).rpartition(".")[2].lower().replace("float8e", "float8_e")
        return self._read(tensor) if name not in _BITS else self._decoded(tensor, _BITS[name]).view(ENCODED[name])

    def read_all(self, tensors: Sequence[Any]) -> list[Array]:
        """Return copies of the elements of several tensors."""
        return [self.read(tensor) for tensor in tensors]

    def dtype(self, name: str = "float32") -> Any:
        """Return what this kind's framework calls the dtype *name*."""
        return getattr(self.module, name)


class _Numpy(TensorKind):
    name = "numpy"

    def split(self, tensor: Any, rows: Sequence[int]) -> list[Any]:
        return list(np.split(tensor, np.cumsum(rows)[:-1]))

    def _make(self, array: Array) -> Any:
        return array.copy()

    def _read(self, tensor: Any) -> Array:
        return np.array(tensor)

    def dtype(self, name: str = "float32") -> Any:
        return np.dtype(name)


class _Torch(TensorKind):
    name = "torch"

    def split(self, tensor: Any, rows: Sequence[int]) -> list[Any]:
        return list(tensor.split(list(rows)))

    def _make(self, array: Array) -> Any:
        return self.module.from_numpy(array.copy())

    def _read(self, tensor: Any) -> Array:
        return np.array(tensor.detach().numpy())


class _Paddle(TensorKind):
    name = "paddle"

    def split(self, tensor: Any, rows: Sequence[int]) -> list[Any]:
        return list(self.module.split(tensor, list(rows)))

    def _make(self, array: Array) -> Any:
        return self.module.to_tensor(array)

    def _read(self, tensor: Any) -> Array:
        return np.array(tensor.numpy())

    def _encoded(self, bits: Array, dtype: str) -> Any:
        """Return a new tensor; Paddle takes numpy's uint16 for bfloat16, and gives it back so."""
        return self._make(bits) if dtype == "bfloat16" else super()._encoded(bits, dtype)

    def _decoded(self, tensor: Any, bits: str) -> Array:
        return self._read(tensor)


class _MindSpore(TensorKind):
    name = "mindspore"

    def __init__(self) -> None:
        super().__init__()
        take_first_error()

    def split(self, tensor: Any, rows: Sequence[int]) -> list[Any]:
        return list(self.module.mint.split(tensor, list(rows)))

    def _make(self, array: Array) -> Any:
        return self.module.Tensor(array)

    def _read(self, tensor: Any) -> Array:
        return np.array(tensor.asnumpy())

    def _encoded(self, bits: Array, dtype: str) -> Any:
        if not self.version.startswith("2.7."):
            return super()._encoded(bits, dtype)
        numbers = (bits.astype("uint32") << 16).view("float32")  # MindSpore 2.7 has no views of another dtype
        return self._make(numbers).astype(self.dtype(dtype))

    def _decoded(self, tensor: Any, bits: str) -> Array:
        if not self.version.startswith("2.7."):
            return super()._decoded(tensor, bits)
        return (self._read(tensor.astype(self.dtype("float32"))).view("uint32") >> 16).astype(bits)


_ADAPTERS: dict[str, type[TensorKind]] = {kind.name: kind for kind in (_Numpy, _Torch, _Paddle, _MindSpore)}
KINDS = tuple(_ADAPTERS)


def is_installed(name: str) -> bool:
    """Tell whether the framework can be found, without importing it; a folder that happens to have its name is none."""
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin is not None


def kind_named(name: str) -> TensorKind:
    """Import the framework *name* and return its kind of tensor."""
    return _ADAPTERS[name]()


def kind_for(preferred: str, dtypes: Sequence[str], allowed: Sequence[str]) -> str | None:
    """Return the first kind of tensor, of those *allowed*, that has all the *dtypes*; None if there is none.

    *preferred* comes first, and then numpy, because any frontend takes its arrays.
    """
    for kind in (preferred, *KINDS):
        if kind in allowed and not _lacks(kind) & set(dtypes):
            return kind
    return None


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
