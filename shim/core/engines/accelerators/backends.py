"""Torch's own backends for process groups: which of them serves a kind of device, and how it is made."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from shim.errors import EngineError

__all__ = ["TorchBackend", "torch_backend"]

_FOREVER = timedelta(days=365)  # the engine has the timeouts, and some backends end the process at their own


class TorchBackend(NamedTuple):
    """A backend's *name*, and what makes one of a store that its ranks share, and nobody else, a name of that, a rank and a number of ranks."""

    name: str
    make: Callable[[Any, str, int, int], Any]


def torch_backend(device: str, wanted: str = "") -> TorchBackend:
    """Return torch's backend for devices that torch calls *device*: the *wanted* one where it serves them, otherwise torch's default.

    Raises EngineError where torch has none.
    """
    if "torch" not in sys.modules:
        raise EngineError("torch could have a backend for it, which takes torch's tensors, and torch is not imported")
    from torch.distributed import Backend

    serves = device in Backend.backend_capability.get(wanted, ())
    name = wanted if serves else Backend.default_device_backend_map.get(device)
    if name is None:
        raise EngineError(f"torch has no backend for devices that it calls {device}; its makers' package brings one")
    plugin = Backend._plugins.get(name.upper())
    if plugin is not None:
        return TorchBackend(name, _maker_of_extended(plugin) if plugin.extended_api else _maker_of_plain(plugin))
    from torch._C import _distributed_c10d as built_in

    kind: Any = getattr(built_in, f"ProcessGroup{name.upper()}", None)
    if kind is None:
        raise EngineError(f"this torch was built without its backend {name} for devices that it calls {device}")
    return TorchBackend(name, _maker_of_built_in(kind))


def _maker_of_built_in(kind: Any) -> Callable[[Any, str, int, int], Any]:
    def make(store: Any, name: str, rank: int, size: int) -> Any:
        options = kind.Options()
        options._timeout, options.group_name = _FOREVER, name
        return kind(store, rank, size, options)

    return make


def _maker_of_plain(plugin: Any) -> Callable[[Any, str, int, int], Any]:
    return lambda store, _name, rank, size: plugin.creator_fn(store, rank, size, _FOREVER)


def _maker_of_extended(plugin: Any) -> Callable[[Any, str, int, int], Any]:
    def make(store: Any, name: str, rank: int, size: int) -> Any:
        from torch._C._distributed_c10d import _DistributedBackendOptions

        options = _DistributedBackendOptions()
        options.store, options.timeout, options.group_id = store, _FOREVER, name
        options.group_rank, options.group_size, options.global_ranks_in_group = rank, size, []  # none: all ranks
        return plugin.creator_fn(options, None)

    return make
