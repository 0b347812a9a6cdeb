"""torch's hooks round the calls of a group (torch 2.14): ``register_pre_hook``, ``register_post_hook``, ``register_abort_hook``.

torch's own kernels call the first two, in C++: its NaN check and flight recorder are such hooks, which no Python code sees being registered.
So the calls of a group that has hooks go through torch's operators to these kernels, which find a backend at the group that gives the calls
back to it. A group without hooks pays for a look at one attribute.
"""

from __future__ import annotations

import contextlib
import functools
import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed.distributed_c10d

from shim.errors import CollectiveTimeoutError, EngineError
from shim.frontends.torch._backend.c10d_operators import carried_out
from shim.frontends.torch._groups.backends import Backend
from shim.frontends.torch._methods.call_hooks import call_abort_hooks

_core: Any = torch._C
_c10d: Any = _core._distributed_c10d  # whose names are no public ones
_TorchGroup: Any = torch.distributed.ProcessGroup
_TorchBackend: Any = _c10d.Backend
_distributed: Any = torch.distributed.distributed_c10d
_ASK_FOR_RECORDER = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
_DUMPS = 0x46524543  # the abort hook that writes the flight recorder's file: torch numbers its own hooks so


class EngineBackend(_TorchBackend):  # type: ignore[misc]  # of Any
    """What torch's C++ code finds as the backend of *group* for host tensors: it gives each call back to the group."""

    def __init__(self, group: Any) -> None:
        super().__init__(group.core.rank, group.core.size)
        self._group: Any = weakref.ref(group)  # which holds this

    def getBackendName(self) -> str:
        """Return the name of the backend, under which torch's flight recorder keeps the calls."""
        return Backend.SHIM


def add_collective(name: str) -> None:
    """Have torch's kernels carry out the method *name* of a group through its backend."""

    def call(self: EngineBackend, *arguments: Any) -> Any:
        return carried_out(self._group().carry_out, name, *arguments)

    setattr(EngineBackend, name, call)


def follow(group: Any, hook: object) -> None:
    """From now on, let *group*'s calls go through torch's hooks, of which one is *hook*."""
    backend_of(group)
    group.hooks |= {hook}


def backend_of(group: Any) -> EngineBackend:
    """Return the backend of *group*, made and registered with torch's C++ code when it is first asked for."""
    backend: EngineBackend | None = vars(group).get("torchs_backend")
    if backend is None:
        backend = vars(group)["torchs_backend"] = EngineBackend(group)
        kind = _TorchGroup.BackendType.CUSTOM
        _TorchGroup._register_backend(group, torch.device("cpu"), kind, backend)
        _TorchGroup._set_default_backend(group, kind)
    return backend


class Hooked:
    """The methods of a group about hooks, as torch's own documents them."""

    hooks: frozenset[object]
    abort_hooks: Mapping[int, Callable[[], object]]
    _get_backend: Callable[[Any], Any]

    def register_pre_hook(self, hook_id: int, hook: Callable[[Any], object]) -> None:
        """Call *hook* with PreHookArgs before each call, in order of *hook_id*; it replaces the hook that has the same."""
        _TorchGroup.register_pre_hook(self, hook_id, hook)
        follow(self, ("pre", int(hook_id)))

    def unregister_pre_hook(self, hook_id: int) -> None:
        """Call the pre-hook *hook_id* no more, if there is one."""
        _TorchGroup.unregister_pre_hook(self, hook_id)
        self.hooks -= {("pre", int(hook_id))}

    def register_post_hook(self, hook_id: int, hook: Callable[[Any], object]) -> None:
        """Call *hook* with PostHookArgs when a call has been begun, in order of *hook_id*; it replaces the hook that has the same."""
        _TorchGroup.register_post_hook(self, hook_id, hook)
        follow(self, ("post", int(hook_id)))

    def unregister_post_hook(self, hook_id: int) -> None:
        """Call the post-hook *hook_id* no more, if there is one."""
        _TorchGroup.unregister_post_hook(self, hook_id)
        self.hooks -= {("post", int(hook_id))}

    @property
    def supports_abort_hooks(self) -> bool:
        """Always, unlike a group of gloo's."""
        return True

    def register_abort_hook(self, hook_id: int, hook: Callable[[], object]) -> None:
        """Call *hook* on this rank when the group fails or times out, and before ``abort``; it replaces the hook that has the same *hook_id*.

        It may be called more than once.
        """
        self.abort_hooks = {**self.abort_hooks, int(hook_id): hook}
        follow(self, "abort")

    def unregister_abort_hook(self, hook_id: int) -> None:
        """Call the abort hook *hook_id* no more, if there is one."""
        self.abort_hooks = {one: hook for one, hook in self.abort_hooks.items() if one != hook_id}
        self.hooks -= set() if self.abort_hooks else {"abort"}

    @property
    def supports_completion_hooks(self) -> bool:
        """Never: torch gives Python code none of them."""
        return False

    def get_backend(self, device: Any) -> EngineBackend:
        """Return torch's object for what serves the tensors of *device*. Raises: RuntimeError for others than the CPU."""
        self._get_backend(device)
        return backend_of(self)


@contextlib.contextmanager
def aborting(group: Any, goes_on: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Call the abort hooks of *group* if it fails meanwhile; not where a time is over after which the work *goes_on*."""
    try:
        yield
    except EngineError as error:
        if not (isinstance(error, CollectiveTimeoutError) and goes_on()):
            call_abort_hooks(group.abort_hooks)
        raise


def follow_torchs_own() -> None:
    """From now on, follow torch's own hooks that are attached to a group of the engine's, which torch does in C++."""
    for name in ("NanCheckHook", "FlightRecorderHook"):
        kind = getattr(_c10d, name, None)
        if kind is not None and not hasattr(kind.attach, "__wrapped__"):
            kind.attach = staticmethod(_attaching(name, kind.attach))
    name = "_maybe_attach_flight_recorder"
    attach = getattr(_distributed, name, None)
    if attach is not None and not hasattr(attach, "__wrapped__"):
        setattr(_distributed, name, _attaching_if_asked(attach))


def _attaching(name: str, attach: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(attach)
    def attach_and_follow(pg: Any, *arguments: Any, **named: Any) -> Any:
        if not hasattr(pg, "carry_out"):
            return attach(pg, *arguments, **named)
        follow(pg, name)
        if "global_ranks" in (attach.__doc__ or "") and not arguments:
            named.setdefault("global_ranks", list(pg.core.ranks))
        hook = attach(pg, *arguments, **named)
        if name == "FlightRecorderHook" and hasattr(_c10d, "_dump_fr_trace_file"):
            # Only of backends in C++ does torch know when they fail.
            rank = pg.core.ranks[pg.core.rank]
            pg.register_abort_hook(_DUMPS, functools.partial(_c10d._dump_fr_trace_file, rank, backend=Backend.SHIM))
        return hook

    return attach_and_follow


def _attaching_if_asked(attach: Callable[..., None]) -> Callable[..., None]:
    """torch 2.15 attaches its flight recorder to every group. To one of the engine's, whose calls it would slow down, only if it is asked for."""

    @functools.wraps(attach)
    def attach_if_asked(pg: Any, backend_config: Any, *arguments: Any) -> None:
        if not hasattr(pg, "carry_out"):
            attach(pg, backend_config, *arguments)
        elif any(
            os.environ.get(name) for name in _ASK_FOR_RECORDER
        ):  # whichever backend the program asked for: gloo's records by itself
            attach(pg, _distributed.BackendConfig(_distributed.Backend(Backend.SHIM)), *arguments)

    return attach_if_asked
