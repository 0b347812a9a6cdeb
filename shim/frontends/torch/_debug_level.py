"""torch's debug level: what was set, or what the environment says."""

from __future__ import annotations

import os
from enum import Enum
from typing import Any

from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends.torch._errors import ArgumentTypeError


class DebugLevel(Enum):
    """How much is checked and told; the engine checks every call at each level.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch-distributed-debug
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
