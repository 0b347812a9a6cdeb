"""The group that torch's own code gets: the frontend's ProcessGroup, which is torch's ProcessGroup as well.

torch's C++ code (DDP's reducer, functional collectives) comes to its methods by name, and so does ``torch.distributed``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch.distributed as torch_distributed

from shim.core import groups
from shim.errors import UnsupportedError
from shim.frontends.torch._backend.own_record import by_torch
from shim.frontends.torch._backend.work import EngineWork
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups import registry
from shim.frontends.torch._groups.backends import Backend
from shim.frontends.torch._groups.process_group import ProcessGroup
from shim.frontends.torch._methods.other_collectives import OtherCollectives
from shim.frontends.torch._methods.overloaded_collectives import OverloadedCollectives

__all__ = ["EngineGroup"]


_TorchGroup: Any = torch_distributed.ProcessGroup


class EngineGroup(ProcessGroup, _TorchGroup):  # type: ignore[misc]  # of Any, as torch gives its methods other types
    """A group of the engine's, in ``torch.distributed`` and in the frontend alike; what communicates returns torch's Work.

    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.ProcessGroup
    """

    def __init__(
        self, core: groups.ProcessGroup, group_name: str, group_desc: str, backend: str, tag: str = ""
    ) -> None:
        _TorchGroup.__init__(self, core.rank, core.size)
        ProcessGroup.__init__(self, core, group_name, group_desc, backend, tag)

    # The names under which torch's C++ code asks.
    def getRank(self) -> int:
        """Return the caller's rank in this group."""
        return self.core.rank

    def getSize(self) -> int:
        """Return the number of its ranks."""
        return self.core.size

    def getBackendName(self) -> str:
        """Return the name of its backend, whatever the program has asked for: DDP would look for gloo's own objects."""
        return Backend.SHIM

    def getGroupName(self) -> str:
        """Return the group's own name."""
        return self.group_name

    def setGroupName(self, name: str) -> None:
        """Call the group *name*."""
        self._set_group_name(name)

    def getGroupDesc(self) -> str:
        """Return what describes the group."""
        return self.group_desc

    def setGroupDesc(self, description: str) -> None:
        """Describe the group by *description*."""
        self._set_group_desc(description)

    def shutdown(self) -> None:
        """End it on this rank, the world with all groups, and have the frontend forget it; torch forgets it itself."""
        is_world = registry.is_world(self)
        super().shutdown()
        with by_torch():
            if is_world:
                registry.forget_all()
            else:
                registry.forget(self)

    abort = shutdown

    def boxed(self) -> Any:
        """Return what torch's graphs hold in place of a group."""
        return _TorchGroup.boxed(self)

    def _start_coalescing(self, device: Any) -> None:
        _refuse("_start_coalescing", f"no operations of several devices to begin together, got {device}")

    def _end_coalescing(self, device: Any) -> Any:
        _refuse("_end_coalescing", f"no operations of several devices to begin together, got {device}")

    def _register_on_completion_hook(self, hook: Any) -> None:
        _refuse("_register_on_completion_hook", f"no hooks for works that end, got {hook!r}")


def _refuse(name: str, what: str) -> None:
    raise torch_function(f"ProcessGroup.{name}").explain(UnsupportedError(f"the engine has {what}"))


def _returning_torchs_work(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: EngineGroup, *arguments: Any, **named: Any) -> EngineWork:
        return EngineWork(method(self, *arguments, **named))

    return call


def _add_collectives() -> None:
    for methods in (OverloadedCollectives, OtherCollectives):
        for name, method in vars(methods).items():
            if callable(method) and not name.startswith("__") and name != "monitored_barrier":
                setattr(EngineGroup, name, _returning_torchs_work(method))


_add_collectives()
