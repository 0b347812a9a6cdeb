"""The tensor whose elements are on their way. Import this only where torch is loaded."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Mapping
from typing import Any

from shim.core.work import Work

_torch: Any = sys.modules["torch"]
# Makes C code that asks the stand-in itself for its memory fail, where it would read from address 0.
_forbid_memory: Any = getattr(_torch._C, "_set_throw_on_mutable_data_ptr", lambda tensor: tensor)
_TORCH = os.path.join(os.path.dirname(_torch.__file__), "")
# What wants shapes alone, and the storage of what stands for the tensor.
_COMPILER = (os.path.join(_TORCH, "_dynamo", ""), os.path.join(_TORCH, "_subclasses", ""))


class AsyncCollectiveTensor(_torch.Tensor):  # type: ignore[misc]  # mypy does not see torch
    """Stands for *elem*, which a collective is writing; any use of its elements waits for that first.

    Deviates: every function of torch waits, views too; `elem` waits as well, so that nobody sees memory in flight, and so does
    a compiled graph that one is passed to.
    """

    __slots__ = ("_elem", "_work")

    _elem: Any
    _work: Work | None

    # A reader of these C functions would find no memory; `__dlpack__` waits.
    __dlpack_c_exchange_api__ = None

    @staticmethod
    def __new__(cls, elem: Any) -> AsyncCollectiveTensor:
        made: AsyncCollectiveTensor = _torch.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            layout=elem.layout,
            device=elem.device,
            requires_grad=elem.requires_grad,
        )
        _forbid_memory(made)
        made._elem = elem.trigger_wait() if isinstance(elem, AsyncCollectiveTensor) else elem
        made._work = None
        return made

    @property
    def completed(self) -> bool:
        """Whether somebody has waited for it."""
        return self._work is None

    @property
    def elem(self) -> Any:
        """The tensor that is waited for."""
        work = self._work  # another thread may be waiting too
        if work is not None:
            work.wait()
            self._work = None
        return self._elem

    @property
    def _described(self) -> Any:
        """The same for torch's graphs, which read it by the name that ``__tensor_flatten__`` gives.

        torch waits where it runs a graph. Its compiler and its guards, which may be C code or code without a file, ask for the
        shape alone and do not wait: a send that the work needs may come later in the same program.
        """
        asking = _asking()
        return self.elem if asking.startswith(_TORCH) and not asking.startswith(_COMPILER) else self._elem

    def trigger_wait(self) -> Any:
        """Wait, and return a plain tensor with these elements; gradients go through it."""
        return _torch.ops.aten.alias(self) if self.requires_grad else self.elem

    def wait(self) -> Any:
        """Wait, and return a plain tensor with these elements; gradients go through it."""
        return self.trigger_wait()

    def numpy(self) -> Any:
        """Wait, and return the elements as a NumPy array."""
        return self.elem.numpy()

    def tolist(self) -> Any:
        """Wait, and return the elements as numbers in lists."""
        return self.elem.tolist()

    def data_ptr(self) -> int:
        """Wait, and return where the elements are."""
        return int(self.elem.data_ptr())

    def untyped_storage(self) -> Any:
        """Wait, and return the memory the elements are in."""
        return super().untyped_storage() if _asking().startswith(_COMPILER) else self.elem.untyped_storage()

    def __dlpack__(self, **options: Any) -> Any:
        return self.trigger_wait().__dlpack__(**options)

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        if not _asking().startswith((*_COMPILER, "<")):
            _ = self.elem  # whoever asks may read the elements next
        return ["_described"], None

    @staticmethod
    def __tensor_unflatten__(inner: Mapping[str, Any], _meta: None, _size: Any, _stride: Any) -> AsyncCollectiveTensor:
        return AsyncCollectiveTensor(inner["_described"])

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.elem.__reduce_ex__(protocol)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self.trigger_wait(), memo)

    def __repr__(self) -> str:
        return f"AsyncCollectiveTensor({self.trigger_wait()})"

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        out = func(*map(_there, args), **{name: _there(value) for name, value in (kwargs or {}).items()})
        first = args[0] if args else None
        is_in_place = func._schema.is_mutable  # such an operator returns what it was given
        return first if is_in_place and isinstance(first, cls) and out is first._elem else out


def _asking() -> str:
    """Return the file of the code that asks our caller."""
    return sys._getframe(2).f_code.co_filename


def _there(argument: Any) -> Any:
    """Return *argument* of one of torch's operators with the tensors in it that are on their way waited for."""
    if isinstance(argument, AsyncCollectiveTensor):
        return argument.elem
    if isinstance(argument, (list, tuple)):
        return type(argument)(map(_there, argument))
    return argument


def in_flight(elem: Any, work: Work) -> AsyncCollectiveTensor:
    """Return the tensor that stands for *elem*, which the started *work* is writing."""
    made = AsyncCollectiveTensor(elem)
    made._work = work
    return made
