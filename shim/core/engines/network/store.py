"""The store through which a c10d backend connects: the control connections, which are authenticated."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from shim.core.control import Control
from shim.errors import CollectiveTimeoutError

__all__ = ["store_over"]


def store_over(control: Control, name: str, timeout: float) -> Any:
    """Return a torch Store whose keys only this group, *name*, has; a key is waited for up to *timeout* seconds."""
    from torch._C._distributed_c10d import Store  # torch is imported only when this engine is asked for

    class ControlStore(Store):
        def __init__(self) -> None:
            super().__init__()
            self._keys: set[str] = set()

        def set(self, key: str, value: str | bytes) -> None:
            self._keys.add(key)
            control.put(f"{name}/{key}", value.encode() if isinstance(value, str) else bytes(value))

        def drop_all(self) -> None:
            """Drop what this rank has set."""
            for key in self._keys:
                control.drop(f"{name}/{key}")

        def get(self, key: str) -> bytes:
            return control.get(f"{name}/{key}", timeout)

        def wait(self, keys: Sequence[str], limit: timedelta | None = None) -> None:
            for key in keys:
                control.get(f"{name}/{key}", timeout if limit is None else limit.total_seconds())

        def check(self, keys: Sequence[str]) -> bool:
            try:
                self.wait(keys, timedelta(0))
            except CollectiveTimeoutError:
                return False
            return True

    return ControlStore()
