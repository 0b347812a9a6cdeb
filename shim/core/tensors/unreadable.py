"""Why a torch tensor cannot be read, and what to pass in its place."""

from __future__ import annotations

import sys
from typing import Any


def why_not_dense(tensor: Any) -> str:
    """Return what to say of a torch tensor whose elements do not lie in plain memory, '' of one whose do."""
    if tensor.is_nested:
        return "{role} must be dense, got a nested tensor\nPass the tensors of tensor.unbind(), and read the results there."
    if tensor.layout is not sys.modules["torch"].strided:
        return f"{{role}} must be dense, got layout {tensor.layout}\nPass tensor.to_dense(), and read the result there."
    return ""


def why_not_here(tensor: Any) -> str:
    """Return the same of one that has no elements, or that a transform of functions stands for."""
    if tensor.device.type == "meta":
        return (
            "{role} must have elements, got a tensor on device meta\n"
            "Give it memory with torch.empty_like(tensor, device='cpu'), fill it, and read the result there."
        )
    transform = _transform_of(tensor)
    if transform:
        return (
            f"{{role}} must be a plain tensor, got what {transform} passes in place of one\n"
            "Call it outside of the transformed function, on whole tensors."
        )
    return ""


def _transform_of(tensor: Any) -> str:
    """Return the name of torch's transform of functions that has made *tensor*, '' where none has."""
    functorch = getattr(sys.modules["torch"]._C, "_functorch", None)
    if functorch is None or not functorch.is_functorch_wrapped_tensor(tensor):
        return ""
    if functorch.is_batchedtensor(tensor):
        return "torch.vmap"
    return "torch.func.grad or jvp" if functorch.is_gradtrackingtensor(tensor) else "torch.func.functionalize"
