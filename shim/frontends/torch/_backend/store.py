"""The store of a group that the frontend has made, as torch's own code expects one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch.distributed.distributed_c10d as torch_distributed

from shim.frontends.torch._groups.process_group import ProcessGroup
from shim.frontends.torch._stores.stores import Store

__all__ = ["EngineStore"]


_TorchStore: Any = torch_distributed.Store


class EngineStore(_TorchStore):  # type: ignore[misc]  # torch's stubs do not export it
    """The keys of *group*, in the store that its ranks share; there is one when it is first used.

    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.Store
    """

    def __init__(self, group: ProcessGroup) -> None:
        super().__init__()
        self._group = group
        self._found: Store | None = None

    @property
    def _store(self) -> Store:
        if self._found is None:
            self._found = self._group.get_group_store()
        return self._found

    def set(self, key: str, value: str | bytes) -> None:
        """Put *value* under *key*."""
        self._store.set(key, value)

    def get(self, key: str) -> bytes:
        """Wait for *key* and return its value."""
        return self._store.get(key)

    def add(self, key: str, amount: int) -> int:
        """Add *amount* to the number under *key* and return the sum."""
        return self._store.add(key, amount)

    def append(self, key: str, value: str | bytes) -> None:
        """Put *value* after what is under *key*."""
        self._store.append(key, value)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Put *desired* under *key* if *expected* is there; return what is there now."""
        return self._store.compare_set(key, expected, desired)

    def delete_key(self, key: str) -> bool:
        """Remove *key* and tell whether it was there."""
        return self._store.delete_key(key)

    def check(self, keys: Sequence[str]) -> bool:
        """Tell whether all *keys* are there."""
        return self._store.check(keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all *keys* are there."""
        self._store.wait(keys, timeout)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Wait for all *keys* and return their values."""
        return self._store.multi_get(keys)

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Put each of *values* under its one of *keys*."""
        self._store.multi_set(keys, values)

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put *value* at the end of the queue of *key*."""
        self._store.queue_push(key, value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value from the queue of *key*."""
        return self._store.queue_pop(key, block)

    def queue_len(self, key: str) -> int:
        """Return the number of values in the queue of *key*."""
        return self._store.queue_len(key)

    def num_keys(self) -> int:
        """Return the number of keys that have a value."""
        return self._store.num_keys()

    def has_extended_api(self) -> bool:
        """Tell whether there are ``append``, ``multi_get`` and ``multi_set``."""
        return True

    def set_timeout(self, timeout: timedelta) -> None:
        """Wait *timeout* from now on."""
        self._store.set_timeout(timeout)

    @property
    def timeout(self) -> timedelta:
        """How long ``get`` and ``wait`` wait."""
        return self._store.timeout

    def clone(self) -> Any:
        """Return another store with the same content."""
        return EngineStore(self._group)

    getNumKeys, deleteKey = num_keys, delete_key  # as torch's C++ code calls them
