"""A store within one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from shim.core.job.stores.base import DEFAULT_TIMEOUT, Store, timed_out
from shim.core.job.stores.table import MUTATING, Operation, Table

__all__ = ["HashStore"]


class HashStore(Store):
    """A store for the threads of one process. Clones share its content; a forked child has a copy of its own."""

    def __init__(self, timeout: float = DEFAULT_TIMEOUT) -> None:
        super().__init__(timeout)
        self._table = Table()
        self._changed = threading.Condition()

    def request(self, operation: Operation, fields: Sequence[bytes], timeout: float | None = None) -> list[bytes]:
        seconds = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + seconds
        with self._changed:
            while (result := self._table.carry_out(operation, fields)) is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise timed_out(operation, fields, self._table.missing(fields), seconds)
                self._changed.wait(min(left, threading.TIMEOUT_MAX))
            if operation in MUTATING:
                self._changed.notify_all()
            return result

    def clone(self) -> HashStore:
        other = HashStore(self.timeout)
        other._table, other._changed = self._table, self._changed
        return other
