"""Arguments on their way to the ranks: what is made there, of parts that can be pickled."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

# By frontend: the framework, and the module that begins and makes groups.
FRAMEWORKS = {"torch": "torch", "paddle_3": "paddle", "mindspore": "mindspore"}
HOMES = {
    "torch": "shim.frontends.torch.distributed",
    "paddle_3": "shim.frontends.paddle_3.distributed",
    "mindspore": "shim.frontends.mindspore.mint.distributed",
}
GROUPS = ("both", "first", "second", "destroyed")


@dataclass(frozen=True)
class Recipe:
    """What ``MAKERS[kind]`` makes of the other fields, on a rank that has these *groups* and a *frontend*'s module."""

    kind: str
    of: tuple[Any, ...] = ()


def made(argument: Any, frontend: Any, groups: dict[str, Any]) -> Any:
    """Return the argument, with all recipes in it carried out."""
    if isinstance(argument, Recipe):
        if argument.kind == "group":
            return groups[argument.of[0]]
        if argument.kind == "attribute":
            return getattr(frontend, argument.of[0])
        if argument.kind == "reduce_op":
            return getattr(getattr(frontend, "ReduceOp", None), argument.of[0], argument.of[0])
        return MAKERS[argument.kind](*argument.of)
    if isinstance(argument, list | tuple):
        return type(argument)(made(one, frontend, groups) for one in argument)
    if isinstance(argument, dict):
        return {key: made(value, frontend, groups) for key, value in argument.items()}
    return argument


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "plain": lambda array: array,
    "transposed": lambda array: array.T,
    "backwards": lambda array: array[::-1] if array.ndim else array,
    "every second": lambda array: array[::2] if array.ndim else array,
    "expanded": lambda array: np.broadcast_to(array, (2, *array.shape)),
    "read only": lambda array: np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape),
}


def _array(dtype: str, shape: tuple[int, ...], layout: str) -> np.ndarray:
    return LAYOUTS[layout](np.ones(shape, dtype))


def _tensor(framework: str, dtype: str, shape: tuple[int, ...]) -> Any:
    module = importlib.import_module(framework)
    values = np.ones(shape, dtype)
    if framework == "torch":
        return module.from_numpy(values)
    return (module.to_tensor if framework == "paddle" else module.Tensor)(values)


class Raising:
    """What containers and numbers are asked, it raises at."""

    def _fail(self, *arguments: object) -> Any:
        raise OSError("not so")

    __len__ = __iter__ = __getitem__ = __index__ = __int__ = __float__ = __bool__ = __call__ = __contains__ = _fail


class _Lying:
    """It says of itself what cannot be."""

    dtype = shape = strides = device = "lies"
    __array_interface__: ClassVar[dict[str, Any]] = {"shape": (-1,), "typestr": "<f4", "data": (0, False), "version": 3}

    def __len__(self) -> int:
        return 1 << 40

    def __iter__(self) -> Any:
        return iter(int, 1)  # for ever, were it asked for all

    def __index__(self) -> int:
        return 1 << 80

    def __dlpack__(self, **keywords: object) -> Any:
        return self

    def __dlpack_device__(self) -> Any:
        return ("cpu", None)


class _Number(int):
    """A number that says of itself that it is another one."""

    def __index__(self) -> int:
        return -7


def _itself() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


AWKWARD: dict[str, Callable[[], Any]] = {
    "raising": Raising,
    "lying": _Lying,
    "number": lambda: _Number(1),
    "itself": _itself,
    "type": lambda: int,
    "function": lambda: len,
    "generator": lambda: (one for one in (1, 2)),
    "module": lambda: np,
    "objects": lambda: np.array([None, "a"], object),
    "record": lambda: np.zeros(2, [("a", "i4"), ("b", "f8")]),
    "big endian": lambda: np.zeros(2, ">f4"),
    "date": lambda: np.zeros(2, "M8[s]"),
    "scalar": lambda: np.float32(1),
    "bytearray": lambda: bytearray(8),
    "memory": lambda: memoryview(b"12345678"),
    "many dimensions": lambda: np.zeros((1,) * 20),
}

MAKERS: dict[str, Callable[..., Any]] = {
    "array": _array,
    "tensor": _tensor,
    "awkward": lambda name: AWKWARD[name](),
}
