"""What the machine, the launcher and torch's own settings say, translated for this frontend."""

from __future__ import annotations

import os
from enum import Enum
from typing import Any

from shim.core.callers import Caller
from shim.errors import ArgumentError, StateError
from shim.frontends.torch.distributed._backend import Backend, BackendConfig
from shim.frontends.torch.distributed._errors import ArgumentTypeError

__all__ = ["DebugLevel", "Level", "default_backend_for", "has_backend", "local_rank"]


class DebugLevel(Enum):
    """How much is checked and told; the engine checks every call at each level.

    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch-distributed-debug
    """

    OFF = 0
    INFO = 1
    DETAIL = 2

    def __int__(self) -> int:
        return int(self.value)


class Level:
    """The level of this process: what was set last, and before that what the environment says."""

    _now: DebugLevel | None = None

    @classmethod
    def now(cls, caller: Caller) -> DebugLevel:
        """Return it."""
        return cls.read(caller) if cls._now is None else cls._now

    @classmethod
    def choose(cls, caller: Caller, level: Any) -> None:
        """Set it to *level*."""
        if not isinstance(level, DebugLevel):
            raise caller.explain(ArgumentTypeError(f"the level must be a DebugLevel, got {level!r}"))
        cls._now = level

    @classmethod
    def read(cls, caller: Caller) -> DebugLevel:
        """Set it to what TORCH_DISTRIBUTED_DEBUG says, OFF where that is not set, and return it."""
        name = os.environ.get("TORCH_DISTRIBUTED_DEBUG") or "OFF"
        if name.upper() not in DebugLevel.__members__:
            raise caller.explain(ArgumentError(f"TORCH_DISTRIBUTED_DEBUG must be OFF, INFO or DETAIL, got {name}"))
        cls._now = DebugLevel[name.upper()]
        return cls._now


def local_rank(caller: Caller, fallback: Any) -> int:
    """Return LOCAL_RANK, which launchers set, or *fallback*."""
    text = os.environ.get("LOCAL_RANK")
    if text is None and fallback is None:
        raise caller.explain(
            StateError(
                "LOCAL_RANK is not set\nStart the ranks with a launcher such as `shim run`, or give fallback_rank."
            )
        )
    try:
        return int(fallback if text is None else text)
    except ValueError:
        raise caller.explain(ArgumentError(f"LOCAL_RANK must be a number, got {text or fallback!r}")) from None


def default_backend_for(caller: Caller, device: Any) -> str:
    """Return the backend that torch takes for *device*, a ``torch.device`` or the name of one."""
    kind = getattr(device, "type", device)
    if not isinstance(kind, str):
        raise caller.explain(ArgumentTypeError(f"device must be a torch.device or the name of one, got {device!r}"))
    backend = Backend.default_device_backend_map.get(kind.partition(":")[0])
    if backend is None:
        raise caller.explain(
            ArgumentError(f"device must be one of {', '.join(Backend.default_device_backend_map)}, got {device!r}")
        )
    return backend


def has_backend(backend: str) -> bool:
    """Tell whether *backend*, or each of those in ``device:name`` pairs, works on the host's own memory, as gloo does."""
    name = str(backend).lower()
    names = BackendConfig(name).get_device_backend_map().values() if ":" in name else [name]
    return all(one == Backend.GLOO for one in names)
