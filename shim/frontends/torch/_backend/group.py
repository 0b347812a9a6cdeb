"""The group that torch's own code gets, and its works: the frontend's ProcessGroup and Work, which are torch's as well.

torch's C++ code (DDP's reducer, functional collectives) comes to its methods by name, and so does ``torch.distributed``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import FunctionType, MappingProxyType
from typing import Any, cast

import torch
import torch.distributed as torch_distributed

from shim.core import groups
from shim.errors import UnsupportedError
from shim.frontends._releases import methods_of
from shim.frontends.torch._backend.c10d_operators import SeenCall, is_seen, register
from shim.frontends.torch._backend.hooks import Hooked, aborting, add_collective
from shim.frontends.torch._backend.own_record import by_torch
from shim.frontends.torch._backend.store import EngineStore
from shim.frontends.torch._calls.work import Work
from shim.frontends.torch._compiled_graphs import between_graphs
from shim.frontends.torch._compiled_graphs import is_seen as modes_look_on
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups import registry
from shim.frontends.torch._groups.backends import Backend
from shim.frontends.torch._groups.process_group import ProcessGroup
from shim.frontends.torch._methods.other_collectives import OtherCollectives
from shim.frontends.torch._methods.overloaded_collectives import OverloadedCollectives
from shim.frontends.torch._stores.stores import Store

_TorchWork: Any = torch_distributed.Work
_NO_TIMEOUT = timedelta(0)


class EngineWork(Work, _TorchWork):  # type: ignore[misc]  # torch's stubs give its methods other types
    """*work*, as an object of torch's own class too. torch's C++ code comes to ``wait`` and ``get_future``.

    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.Work
    """

    def __init__(self, work: Work) -> None:
        _TorchWork.__init__(self)
        Work.__init__(self, work._started, work._outputs, work._seconds)

    def boxed(self) -> Any:
        """Return what torch's graphs hold in place of a work."""
        return _TorchWork.boxed(self)


class _WatchedWork(EngineWork):
    """The work of a *group* that has abort hooks: they are called if it ends by the group's failure."""

    def __init__(self, work: Work, group: EngineGroup) -> None:
        super().__init__(work)
        self._group = group

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        with aborting(self._group, lambda: timeout != _NO_TIMEOUT and not self.is_completed()):
            return super().wait(timeout)


_TorchGroup: Any = torch_distributed.ProcessGroup


_NEWER_NAMES = {
    "allgather_into_tensor_coalesced": "all_gather_single_coalesced",
    "alltoall_base": "all_to_all_single",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_single_coalesced",
}


# Of C, for calls on which nobody looks: nearly all.
_active_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
_is_profiled: Callable[[], bool] = torch._C._autograd._profiler_enabled


class EngineGroup(ProcessGroup, _TorchGroup):  # type: ignore[misc]  # of Any, as torch gives its methods other types
    """A group of the engine's, in ``torch.distributed`` and in the frontend alike; what communicates returns torch's Work.

    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.ProcessGroup
    """

    hooks: frozenset[object] = frozenset()  # of torch's, which see its calls
    abort_hooks: Mapping[int, Callable[[], object]] = MappingProxyType({})

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

    @property
    def supports_splitting(self) -> bool:
        """Always. torch's ``split_group`` (2.15) asks what serves the CPU, which is the group itself."""
        return True

    def split_group(self, *arguments: Any, **named: Any) -> ProcessGroup | None:
        """Make a group of this group's ranks, as the frontend's class does; torch's own ``split_group`` puts it into torch's record."""
        with by_torch():
            return super().split_group(*arguments, **named)

    def get_group_store(self) -> Any:
        """Return the part of the world's store that is this group's, as a store of torch's too."""
        store = super().get_group_store()
        return EngineStore(lambda: store._core) if isinstance(store, Store) else store

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
        register()
        return _TorchGroup.boxed(self)

    def carry_out(self, method: str, *arguments: Any, **named: Any) -> EngineWork:
        """Return the work of the *method* called so, with these arguments, of which torch's dispatcher sees nothing."""
        carry_out = functools.partial(_METHODS[method], self)
        if not self.abort_hooks:
            return EngineWork(carry_out(*arguments, **named))
        with aborting(self):
            return _WatchedWork(carry_out(*arguments, **named), self)

    def _start_coalescing(self, device: Any) -> None:
        _refuse("_start_coalescing", f"no operations of several devices to begin together, got {device}")

    def _end_coalescing(self, device: Any) -> Any:
        _refuse("_end_coalescing", f"no operations of several devices to begin together, got {device}")

    def _register_on_completion_hook(self, hook: Any) -> None:
        _refuse("_register_on_completion_hook", f"no hooks for works that end, got {hook!r}")


def _refuse(name: str, what: str) -> None:
    raise torch_function(f"ProcessGroup.{name}").explain(UnsupportedError(f"the engine has {what}"))


def _returning_torchs_work(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    own: Any = getattr(_TorchGroup, name, None)  # an older torch may have no such method

    @functools.wraps(method)
    def call(self: EngineGroup, *arguments: Any, **named: Any) -> EngineWork:
        if (_active_modes() or _is_profiled() or self.hooks) and own is not None and (self.hooks or modes_look_on()):
            with SeenCall(self, name, arguments, named) as seen:
                work = own(self, *seen.arguments, **seen.named)
                return cast(EngineWork, seen.works[-1] if seen.works else work)
        return EngineWork(method(self, *arguments, **named))

    # pybind11 takes a call of torch's own method for one of the override's, which it does not call again, by this name.
    function = cast(FunctionType, call)
    function.__code__ = function.__code__.replace(co_name=name)
    return function


def _under_an_older_name(name: str, call: Callable[..., Any]) -> Any:
    """Return *call* as the method *name*, which torch's C++ code takes for an override too: not while a call goes through its own."""
    own: Any = getattr(_TorchGroup, name)
    return property(lambda group: (own if is_seen() else call).__get__(group))


_METHODS: dict[
    str, Callable[..., Any]
] = {}  # by which calls are carried out, in whatever release's form torch makes them


def _add_collectives() -> None:
    calls = {}
    for methods in (OverloadedCollectives, OtherCollectives):
        for name, method in methods_of(methods).items():
            if callable(method) and not name.startswith("__") and name != "monitored_barrier":
                _METHODS[name] = method
                call = calls[name] = _returning_torchs_work(name, method)
                add_collective(name)
                is_older = hasattr(_TorchGroup, _NEWER_NAMES.get(name, ""))
                setattr(EngineGroup, name, _under_an_older_name(name, call) if is_older else call)
    between_graphs(calls, calls)


def _add_hooks() -> None:
    """Give groups the methods that torch's own have in this version."""
    for name, method in vars(Hooked).items():
        if not name.startswith("__") and hasattr(_TorchGroup, name):
            setattr(EngineGroup, name, method)


_add_collectives()


_add_hooks()
