"""What torch's internals ask about tensors, and how they put objects into them."""

from __future__ import annotations

import pickle
from itertools import chain
from typing import Any

from shim.core.objects import check_allowed
from shim.core.tensors import dtype_name, reader_for
from shim.errors import ArgumentError, ShimError, TensorError
from shim.frontends.torch.distributed._errors import torch_function
from shim.frontends.torch.distributed._groups import group_of
from shim.frontends.torch.distributed._options import refuse_device

__all__: list[str] = []

_COMPLEX_PARTS = {"complex64": "float32", "complex128": "float64"}


def _check_single_tensor(param: Any, param_name: str) -> None:
    """Raise TypeError, naming *param_name*, unless *param* is a tensor of any framework."""
    try:
        if isinstance(param, (list, tuple)):
            raise TensorError("{role} must be a tensor")
        reader_for(type(param))
    except TensorError:
        raise torch_function("_check_single_tensor").explain(
            TensorError(f"{param_name} must be one tensor, got a {type(param).__qualname__}")
        ) from None


def _check_tensor_list(param: Any, param_name: str) -> None:
    """Raise TypeError, naming *param_name*, unless *param* is a list of tensors of any framework."""
    if not isinstance(param, list):
        raise torch_function("_check_tensor_list").explain(
            TensorError(f"{param_name} must be a list of tensors, got a {type(param).__qualname__}")
        )
    for place, one in enumerate(param):
        _check_single_tensor(one, f"{param_name}[{place}]")


def _ensure_all_tensors_same_dtype(*tensors: Any) -> None:
    """Raise ValueError unless *tensors*, which may be lists, have one dtype; a complex one goes with that of its parts."""
    every = chain.from_iterable(one if isinstance(one, list) else (one,) for one in tensors)
    names = [dtype_name(one) for one in every]
    if len({_COMPLEX_PARTS.get(name, name) for name in names}) > 1:
        raise torch_function("_ensure_all_tensors_same_dtype").explain(
            ArgumentError(f"all tensors must have one dtype, got {', '.join(names)}")
        )


def _is_fp8(tensor: Any) -> bool:
    """Tell whether the elements of *tensor* are floats of eight bits."""
    return dtype_name(tensor).startswith("float8_e")


def _object_to_tensor(obj: Any, device: Any, group: Any) -> tuple[Any, Any]:
    """Return *obj*, pickled, as a tensor of bytes on *device*, the CPU, and a tensor of their number, for *group*.

    Raises: TypeError for what cannot be pickled; UnsupportedError for another device.
    """
    import torch  # the tensors it returns are torch's

    caller = torch_function("_object_to_tensor", input="obj")
    members = group_of(caller, group)
    refuse_device(caller, "device", device)
    try:
        packed = bytearray(pickle.dumps(obj))
    except Exception as error:  # a class raises what it likes when it cannot be pickled
        raise caller.explain(TensorError(f"{{input}} must be picklable, got {error}"), members) from None
    return torch.frombuffer(packed, dtype=torch.uint8), torch.tensor([len(packed)])


def _tensor_to_object(tensor: Any, tensor_size: Any, group: Any) -> Any:
    """Return the object whose pickle is the first *tensor_size* bytes of *tensor*, which *group* has brought.

    Unpickling runs code that the pickle names: what a rank of *group* sends, this process runs.

    Raises: UnsupportedError where ``SHIM_ALLOW_PICKLE=0`` forbids it.
    """
    caller = torch_function("_tensor_to_object")
    members = group_of(caller, group)
    try:
        check_allowed()
    except ShimError as error:
        raise caller.explain(error, members) from None
    return pickle.loads(tensor.numpy().tobytes()[: int(tensor_size)])
