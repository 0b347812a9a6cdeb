"""Torch's own backends for process groups: which of them serves a kind of device, and how it is made."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from shim.errors import EngineError

_FOREVER = timedelta(days=365)  # the engine has the timeouts, and some backends end the process at their own


# Variables with which backends, by their names, do not end the process after an error: the engine tells of it.
_NOT_ENDING_THE_PROCESS = {
    "hccl": {"TORCH_HCCL_ASYNC_ERROR_HANDLING": "0"},
    "nccl": {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0", "TORCH_NCCL_ENABLE_MONITORING": "0"},
}

# By the backend's name: threads that make one, and variables that were set for them.
_making = threading.Lock()
_makers: Counter[str] = Counter()
_added: dict[str, dict[str, str]] = {}

_Maker = Callable[[Any, str, int, list[int]], Any]


class TorchBackend(NamedTuple):
    """A backend: its *name*, and the function that makes one for some ranks.

    ``make`` takes a store that these ranks share, a name that nobody else uses, the caller's number among them, and their ranks in the world.
    """

    name: str
    make: _Maker


def torch_backend(device: str, wanted: str = "", must_serve: bool = False) -> TorchBackend:
    """Return torch's backend for devices that torch calls *device*: the *wanted* one where it serves them, otherwise torch's default.

    Raises EngineError where torch has none, and where the wanted one *must serve* them and does not.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        raise EngineError("torch could have a backend for it, which takes torch's tensors, and torch is not imported")
    if not torch.distributed.is_available():
        raise EngineError("this torch was built without torch.distributed, which could have a backend for it")
    if device == "cuda" and torch.version.hip is None:
        raise EngineError("this torch was built without ROCm")
    from torch.distributed import Backend

    serves = device in Backend.backend_capability.get(wanted, ())
    if must_serve and not serves:
        raise EngineError(f"torch's backend {wanted} does not serve it")
    name = wanted if serves else Backend.default_device_backend_map.get(device)
    if name is None:
        raise EngineError(f"torch has no backend for devices that it calls {device}; its makers' package brings one")
    plugin = Backend._plugins.get(name.upper())
    if plugin is not None:
        maker = _maker_of_extended(plugin) if plugin.extended_api else _maker_of_plain(plugin)
        return TorchBackend(name, _without_ending_the_process(name, maker))
    from torch._C import _distributed_c10d as built_in

    kind: Any = getattr(built_in, f"ProcessGroup{name.upper()}", None)
    if kind is None:
        raise EngineError(f"this torch was built without its backend {name} for devices that it calls {device}")
    return TorchBackend(name, _without_ending_the_process(name, _maker_of_built_in(kind)))


def _without_ending_the_process(name: str, maker: _Maker) -> _Maker:
    """Have *maker* make backends that do not end the process, unless the user wants that: they read the environment when they are made."""

    def make(store: Any, group: str, rank: int, ranks: list[int]) -> Any:
        with _not_ending_the_process(name):
            return maker(store, group, rank, ranks)

    return make


@contextmanager
def _not_ending_the_process(name: str) -> Iterator[None]:
    """Have the environment say so while threads make backends called *name*, until the last of them is done."""
    with _making:
        _makers[name] += 1
        if _makers[name] == 1:
            _added[name] = {
                key: value for key, value in _NOT_ENDING_THE_PROCESS.get(name, {}).items() if key not in os.environ
            }
            os.environ.update(_added[name])
    try:
        yield
    finally:
        with _making:
            _makers[name] -= 1
            if not _makers[name]:
                for key in _added.pop(name):
                    os.environ.pop(key, None)


def _maker_of_built_in(kind: Any) -> _Maker:
    def make(store: Any, name: str, rank: int, ranks: list[int]) -> Any:
        options = kind.Options()
        options._timeout, options.group_name, options.global_ranks_in_group = _FOREVER, name, ranks
        return kind(store, rank, len(ranks), options)

    return make


def _maker_of_plain(plugin: Any) -> _Maker:
    return lambda store, _name, rank, ranks: plugin.creator_fn(store, rank, len(ranks), _FOREVER)


def _maker_of_extended(plugin: Any) -> _Maker:
    def make(store: Any, name: str, rank: int, ranks: list[int]) -> Any:
        from torch._C._distributed_c10d import _DistributedBackendOptions

        options = _DistributedBackendOptions()
        options.store, options.timeout, options.group_id = store, _FOREVER, name
        options.group_rank, options.group_size, options.global_ranks_in_group = rank, len(ranks), ranks
        return plugin.creator_fn(options, None)

    return make
