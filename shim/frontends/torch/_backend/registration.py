"""Telling torch of the backend.

torch (2.5 and later) calls ``register`` itself whenever it is imported, unless TORCH_DEVICE_BACKEND_AUTOLOAD is 0. So this module imports
nothing that takes time: the engine comes when a group is made.
"""

from __future__ import annotations

import os
from typing import Any

from shim.errors import ArgumentError

_REHEARSED = "SHIM_REHEARSE"  # as core's variables have it, which is not imported here


def register() -> None:
    """Register the backend with torch, and serve gloo's groups too where SHIM_TORCH_BACKEND is 1. In a rehearsal ranks meet nobody."""
    from torch.distributed import is_available

    if not is_available():  # torch was built without it
        return
    from torch.distributed import Backend

    if not hasattr(Backend, "SHIM"):
        Backend.register_backend("shim", _make_group, extended_api=True, devices=["cpu"])
    is_rehearsed = bool(os.environ.get(_REHEARSED))
    if is_rehearsed:
        from shim.frontends.torch._backend.store import meet_nobody

        meet_nobody()
    usual = "1" if is_rehearsed else "0"  # in a rehearsal, gloo itself would look for the other ranks
    said = os.environ.get("SHIM_TORCH_BACKEND") or usual
    if said not in ("0", "1"):
        raise ArgumentError(f"SHIM_TORCH_BACKEND must be 0 or 1, got {said!r}")
    if said == "1":
        from shim.frontends.torch._backend.serving import serve

        serve()


def _make_group(asked: Any, options: Any) -> Any:
    from shim.frontends.torch._backend.making import make_group

    return make_group(asked, options)
