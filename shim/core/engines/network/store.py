"""The store through which a backend of torch's connects: keys that nobody but its ranks can write."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol

from shim.core.control import Control

_BETWEEN_CHECKS = 0.1  # seconds


class Keys(Protocol):
    """Where the values lie. ``get`` waits up to *timeout* seconds for a key, and raises a TimeoutError."""

    def set(self, key: str, value: bytes) -> None: ...

    def get(self, key: str, timeout: float) -> bytes: ...


class ControlKeys:
    """The keys that only the group *name* has, in rank 0's process, by the control connections, which are authenticated."""

    def __init__(self, control: Control, name: str) -> None:
        self._control, self._name = control, name
        self._set: set[str] = set()

    def set(self, key: str, value: bytes) -> None:
        self._set.add(key)
        self._control.put(f"{self._name}/{key}", value)

    def get(self, key: str, timeout: float) -> bytes:
        return self._control.get(f"{self._name}/{key}", timeout)

    def close(self) -> None:
        """Drop what this rank has set."""
        for key in self._set:
            self._control.drop(f"{self._name}/{key}")


def torch_store(keys: Keys, timeout: float, check: Callable[[], object] = bool) -> Any:
    """Return a torch Store of *keys*, which waits up to *timeout* seconds, and ends with what *check*, which it calls meanwhile, raises."""
    from torch._C._distributed_c10d import Store  # torch is imported only when an engine that needs it is asked for

    class KeyStore(Store):
        def set(self, key: str, value: str | bytes) -> None:
            keys.set(key, value.encode() if isinstance(value, str) else bytes(value))

        def get(self, key: str) -> bytes:
            return _awaited(keys, key, timeout, check)

        def wait(self, wanted: Sequence[str], limit: timedelta | None = None) -> None:
            for key in wanted:
                _awaited(keys, key, timeout if limit is None else limit.total_seconds(), check)

        def check(self, wanted: Sequence[str]) -> bool:
            try:
                for key in wanted:
                    keys.get(key, 0.0)
            except TimeoutError:
                return False
            return True

    return KeyStore()


def _awaited(keys: Keys, key: str, timeout: float, check: Callable[[], object]) -> bytes:
    deadline = time.monotonic() + timeout
    while True:
        check()
        left = deadline - time.monotonic()
        try:
            return keys.get(key, max(0.0, min(left, _BETWEEN_CHECKS)))
        except TimeoutError:
            if left <= 0:
                raise
