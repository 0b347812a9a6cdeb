"""What torch's internals ask about tensors, and how objects are put into them."""

from __future__ import annotations

from typing import Any

from shim.core.tensors import dtype_name
from shim.frontends.torch._calls.devices import refuse_device
from shim.frontends.torch._calls.tensor_checks import check_one_dtype, check_tensor, check_tensors
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups.group_arguments import group_of
from shim.frontends.torch._objects import pickled, unpickled

__all__ = [
    "_check_single_tensor",
    "_check_tensor_list",
    "_ensure_all_tensors_same_dtype",
    "_is_fp8",
    "_object_to_tensor",
    "_tensor_to_object",
]

_PACK = torch_function("_object_to_tensor", input="obj")
_UNPACK = torch_function("_tensor_to_object")


def _check_single_tensor(param: Any, param_name: str) -> None:
    """Raise TypeError, naming *param_name*, unless *param* is a tensor of any framework."""
    check_tensor(param, param_name)


def _check_tensor_list(param: Any, param_name: str) -> None:
    """Raise TypeError, naming *param_name*, unless *param* is a list of tensors of any framework."""
    check_tensors(param, param_name)


def _ensure_all_tensors_same_dtype(*tensors: Any) -> None:
    """Raise ValueError unless *tensors*, which may be lists, have one dtype; a complex one goes with that of its parts."""
    check_one_dtype(tensors)


def _is_fp8(tensor: Any) -> bool:
    """Tell whether the elements of *tensor* are floats of eight bits."""
    return dtype_name(tensor).startswith("float8_e")


def _object_to_tensor(obj: Any, device: Any, group: Any, weights_only: bool = False) -> tuple[Any, Any]:
    """Return *obj*, pickled, as a tensor of bytes on *device*, the CPU, and a tensor of their number, for *group*.

    With *weights_only* the bytes are what torch.save makes of it.
    Raises: TypeError for what cannot be pickled; UnsupportedError for another device.
    """
    import torch  # the tensors it returns are torch's

    members = group_of(_PACK, group)
    refuse_device(_PACK, "device", device)
    packed = pickled(_PACK, members, obj, weights_only)
    return torch.frombuffer(packed, dtype=torch.uint8), torch.tensor([len(packed)])


def _tensor_to_object(tensor: Any, tensor_size: Any, group: Any, weights_only: bool = False) -> Any:
    """Return the object whose pickle is the first *tensor_size* bytes of *tensor*, which *group* has brought.

    Unpickling runs code that the pickle names: what a rank of *group* sends, this process runs, unless *weights_only*.
    Raises: UnpicklingError with *weights_only* for what is neither plain data nor torch's tensors.
    Raises: UnsupportedError where ``SHIM_ALLOW_PICKLE=0`` forbids it.
    """
    members = group_of(_UNPACK, group)
    return unpickled(_UNPACK, members, tensor.numpy().tobytes()[: int(tensor_size)], weights_only)
