"""The groups of ``torch.distributed._dist2``: made at the launcher's address, and belonging to no world."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends.torch._calls.devices import check_device
from shim.frontends.torch._calls.options import seconds_of
from shim.frontends.torch._errors import ArgumentAssertionError, ArgumentTypeError
from shim.frontends.torch._groups.backends import backend_of
from shim.frontends.torch._groups.gloo import ProcessGroupGloo
from shim.frontends.torch._groups.process_group import ProcessGroup
from shim.frontends.torch._stores import url_handlers

_factories: dict[str, Callable[..., Any]] = {}
_of_thread = threading.local()


def register(caller: Caller, name: str, func: Callable[..., Any]) -> None:
    """Let *func* make the groups with the backend *name*."""
    if name in _factories or name in ("gloo", "nccl"):
        raise caller.explain(ArgumentError(f"name must be a new one, got {name!r}, which is registered"))
    _factories[name] = func


def make(caller: Caller, backend: str, timeout: timedelta, device: Any, options: dict[str, Any]) -> Any:
    """Make a group of the launcher's ranks."""
    if backend not in _factories:
        backend_of(caller, backend)
        check_device(caller, "device", device)
        if options:
            raise caller.explain(ArgumentAssertionError(f"there are no other options, got {', '.join(options)}"))
    seconds_of(caller, timeout)
    store, rank, world_size = next(url_handlers.meet(caller, "env://", -1, -1, {}))
    store.set_timeout(timeout)
    factory = _factories.get(backend)
    if factory is not None:
        return factory(store, rank, world_size, timeout, device, **options)
    return ProcessGroupGloo(store, rank, world_size, timeout)


def current() -> ProcessGroup | None:
    """Return the group that this thread has chosen last, or None."""
    group: ProcessGroup | None = getattr(_of_thread, "group", None)
    return group


class Used:
    """A stretch of a program in which *group* is the thread's current one."""

    def __init__(self, caller: Caller, group: Any) -> None:
        if not isinstance(group, ProcessGroup):
            raise caller.explain(ArgumentTypeError(f"pg must be a ProcessGroup, got {group!r}"))
        self._group = group
        self._before: ProcessGroup | None = None

    def __enter__(self) -> None:
        self._before = current()
        _of_thread.group = self._group

    def __exit__(self, *_: object) -> None:
        _of_thread.group = self._before
