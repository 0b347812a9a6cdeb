"""``torch.distributed._dist2``, torch's experiment with groups that are objects and nothing else.

See: https://docs.pytorch.org/docs/2.15/distributed._dist2.html
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from shim.frontends.torch._calls.reduce_op import ReduceOp
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups import independent
from shim.frontends.torch._groups.process_group import ProcessGroup

__all__ = ["ProcessGroup", "ReduceOp", "current_process_group", "new_group", "process_group", "register_backend"]

_REGISTER = torch_function("_dist2.register_backend")
_NEW_GROUP = torch_function("_dist2.new_group")
_USE = torch_function("_dist2.process_group")


def register_backend(name: str, func: Callable[..., Any]) -> None:
    """Let *func* make the groups with the backend *name* from a store, a rank, a world size, a timeout and a device.

    Raises: ValueError where *name* is registered.
    """
    independent.register(_REGISTER, name, func)


def new_group(backend: str, timeout: timedelta, device: Any, **kwargs: Any) -> ProcessGroup:
    """Make a group of the launcher's ranks that belongs to no world, with *timeout*; *kwargs* are for a registered *backend*.

    Raises: UnsupportedError for another *device* than the CPU; AssertionError for *kwargs* of other backends.
    """
    return independent.make(_NEW_GROUP, backend, timeout, device, kwargs)  # type: ignore[no-any-return]  # or a factory's


def current_process_group() -> ProcessGroup | None:
    """Return the group that this thread uses, or None."""
    return independent.current()


def process_group(pg: ProcessGroup) -> AbstractContextManager[None]:
    """Return a context in which *pg* is the thread's current group. Raises: TypeError for what is no group."""
    return independent.Used(_USE, pg)
