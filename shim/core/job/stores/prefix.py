"""A part of another store."""

from __future__ import annotations

from collections.abc import Sequence

from shim.core.job.stores.base import Store, name_of
from shim.core.job.stores.table import OF_KEYS, Operation

_PAIRS = frozenset({Operation.SET})
_NO_KEY = frozenset({Operation.LIST, Operation.JOIN, Operation.AWAIT_JOINED, Operation.LEAVE})


class PrefixStore(Store):
    """The keys of *underlying* that begin with *prefix* and a slash, which its own keys do without.

    It waits as long as *underlying* does. Closing it leaves *underlying* open.
    """

    def __init__(self, prefix: str, underlying: Store) -> None:
        self.prefix = prefix
        self.underlying = underlying
        self._start = name_of(prefix) + b"/"

    @property
    def timeout(self) -> float:  # type: ignore[override]  # a plain attribute of the others
        return self.underlying.timeout

    def set_timeout(self, timeout: float) -> None:
        self.underlying.set_timeout(timeout)

    def request(self, operation: Operation, fields: Sequence[bytes], timeout: float | None = None) -> list[bytes]:
        result = self.underlying.request(operation, self._within(operation, fields), timeout)
        if operation is not Operation.LIST:
            return result
        return [key[len(self._start) :] for key in result if key.startswith(self._start)]

    def num_keys(self) -> int:
        """Return the number of values of the underlying store, with this prefix or another."""
        return self.underlying.num_keys()

    def clone(self) -> PrefixStore:
        return PrefixStore(self.prefix, self.underlying.clone())

    def _within(self, operation: Operation, fields: Sequence[bytes]) -> list[bytes]:
        """Return *fields* with the prefix before those that are keys."""
        if operation in _NO_KEY:
            return list(fields)
        if operation in OF_KEYS:
            return [self._start + key for key in fields]
        step = 2 if operation in _PAIRS else len(fields)
        return [self._start + field if place % step == 0 else field for place, field in enumerate(fields)]
