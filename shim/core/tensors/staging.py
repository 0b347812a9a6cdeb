"""Copies of tensors on devices in host memory, made by the frameworks whose tensors they are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from shim.errors import TensorError


class Stage(NamedTuple):
    """How a framework copies: *room* makes a tensor in host memory like one that is there, *copy* makes one with its elements,
    and *back* writes the elements of the second tensor into the first."""

    room: Callable[[Any], Any]
    copy: Callable[[Any], Any]
    back: Callable[[Any, Any], object]


def host_room(tensor: Any) -> Any:
    """Return an uninitialised tensor in host memory with the shape and dtype of *tensor*, which is returned itself where it is there."""
    return tensor if _is_in_host_memory(tensor) else _stage_of(tensor).room(tensor)


def host_copy(tensor: Any) -> Any:
    """Return a copy in host memory of *tensor*, which is returned itself where it is there. Waits for what is being written to it."""
    return tensor if _is_in_host_memory(tensor) else _stage_of(tensor).copy(tensor)


def copy_back(tensor: Any, copy: Any) -> None:
    """Write the elements of *copy* into *tensor*, from which it was made."""
    if copy is not tensor:
        _stage_of(tensor).back(tensor, copy)


_HOST_TYPES = (1, 3, 11)  # DLPack's numbers of host memory, also of pinned


def _is_in_host_memory(tensor: Any) -> bool:
    """Tell whether the engine can be left to read *tensor*, or to say what is wrong with it."""
    framework = _framework_of(tensor)
    if framework == "mindspore":
        return bool(tensor.device.startswith("CPU"))
    if framework == "torch":  # whose other method does not know all devices
        return bool(tensor.device.type == "cpu")
    where = getattr(tensor, "__dlpack_device__", None)
    return where is None or where()[0] in _HOST_TYPES


def _framework_of(tensor: Any) -> str:
    known = (base.__module__.partition(".")[0] for base in type(tensor).__mro__)
    return next((root for root in known if root in _STAGES or root == "mindspore"), "")


def _stage_of(tensor: Any) -> Stage:
    framework = _framework_of(tensor)
    if framework not in _STAGES:
        raise TensorError(
            f"{{tensor}} cannot be copied to host memory, through which the group's calls for devices go: it is a "
            f"{type(tensor).__module__}.{type(tensor).__qualname__}\nTensors of {', '.join(_STAGES)} can."
        )
    return _STAGES[framework]


def _torch_room(tensor: Any) -> Any:
    torch = sys.modules["torch"]
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=tensor.device.type == "cuda")


def _torch_copy(tensor: Any) -> Any:
    room = _torch_room(tensor)
    room.copy_(tensor.detach())
    return room


def _torch_back(tensor: Any, copy: Any) -> None:
    tensor.detach().copy_(copy.detach())


def _cupy_back(array: Any, copy: Any) -> None:
    array[...] = sys.modules["cupy"].asarray(copy)


_STAGES = {
    "torch": Stage(_torch_room, _torch_copy, _torch_back),
    "paddle": Stage(
        lambda tensor: sys.modules["paddle"].empty(tensor.shape, tensor.dtype).cpu(),
        lambda tensor: tensor.detach().cpu(),
        lambda tensor, copy: tensor.copy_(copy, True),
    ),
    "mindspore": Stage(
        lambda tensor: tensor.move_to("CPU", blocking=True),
        lambda tensor: tensor.move_to("CPU", blocking=True),
        lambda tensor, copy: tensor.copy_(copy),
    ),
    "cupy": Stage(
        lambda array: sys.modules["numpy"].empty(array.shape, array.dtype),
        lambda array: array.get(),
        _cupy_back,
    ),
}
