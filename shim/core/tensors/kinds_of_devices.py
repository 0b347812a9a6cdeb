"""What torch calls the kinds of devices that DLPack calls otherwise."""

from __future__ import annotations

import sys

EXTENSION = "extension"  # to DLPack, every device that it does not know; to torch, by the name of its makers' package
_IN_TORCH = {"rocm": "cuda", "oneapi": "xpu"}


def name_in_torch(kind: str) -> str:
    """Return what torch, and so a backend's string, calls devices of *kind*."""
    torch = sys.modules.get("torch")
    if kind == EXTENSION and torch is not None:
        name: str = torch._C._get_privateuse1_backend_name()
        return name
    return _IN_TORCH.get(kind, kind)
