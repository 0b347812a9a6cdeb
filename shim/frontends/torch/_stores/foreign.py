"""A store of somebody else's, such as torch's own or a class of the user's, as one of core's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from shim.core.job import stores
from shim.core.job.stores.table import OF_KEYS, Operation


class ForeignStore(stores.Store):
    """Core's view of *foreign*, an object with the methods of torch's Store, or as many of them as are used.

    What *foreign* raises is passed on. It waits as long as its own timeout says where it cannot be told otherwise.
    """

    def __init__(self, foreign: Any) -> None:
        self.foreign = foreign

    @property
    def timeout(self) -> float:  # type: ignore[override]  # a plain attribute of the others
        limit = getattr(self.foreign, "timeout", None)
        return limit.total_seconds() if isinstance(limit, timedelta) else stores.DEFAULT_TIMEOUT

    def set_timeout(self, timeout: float) -> None:
        self.foreign.set_timeout(timedelta(seconds=timeout))

    def clone(self) -> ForeignStore:
        return ForeignStore(self.foreign.clone())

    def num_keys(self) -> int:
        """Return the number of values, as *foreign* counts them."""
        return int(self.foreign.num_keys())

    def request(self, operation: Operation, fields: Sequence[bytes], timeout: float | None = None) -> list[bytes]:
        if operation is Operation.SET:
            for place in range(0, len(fields), 2):
                self.foreign.set(fields[place].decode(), fields[place + 1])
            return []
        keys = [field.decode() for field in (fields if operation in OF_KEYS else fields[:1])]  # values may be any bytes
        key = keys[0] if keys else ""
        match operation:
            case Operation.GET:
                if timeout is not None:
                    self.foreign.wait(keys, timedelta(seconds=timeout))
                return [_bytes(self.foreign.get(one)) for one in keys]
            case Operation.ADD:
                return [b"%d" % self.foreign.add(key, int(fields[1]))]
            case Operation.APPEND:
                self.foreign.append(key, fields[1])
            case Operation.COMPARE_SET:
                return [_bytes(self.foreign.compare_set(key, fields[1], fields[2]))]
            case Operation.DELETE:
                return [b"1"] if self.foreign.delete_key(key) else []
            case Operation.CHECK:
                return [b"1"] if self.foreign.check(keys) else []
            case Operation.WAIT:
                self.foreign.wait(keys, *([] if timeout is None else [timedelta(seconds=timeout)]))
            case Operation.LIST:
                return [one.encode() for one in self.foreign.list_keys()]
            case Operation.QUEUE_PUSH:
                self.foreign.queue_push(key, fields[1])
            case Operation.QUEUE_POP:
                return [_bytes(self.foreign.queue_pop(key))]
            case Operation.QUEUE_TRY_POP:
                return [_bytes(self.foreign.queue_pop(key, False))]
            case _:
                return [b"%d" % self.foreign.queue_len(key)]
        return []


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
