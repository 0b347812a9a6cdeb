"""What every store can do, built on one operation: carry this out, and wait if need be; and a part of another store."""

from __future__ import annotations

from collections.abc import Sequence

from shim.core.job.stores.table import OF_KEYS, Operation
from shim.errors import ArgumentError, QueueEmptyError, StoreTimeoutError

DEFAULT_TIMEOUT = 300.0  # seconds; what torch documents
_PAIRS = frozenset({Operation.SET})
_NO_KEY = frozenset({Operation.LIST, Operation.JOIN, Operation.AWAIT_JOINED, Operation.LEAVE})

Key = str | bytes
Value = str | bytes | bytearray | memoryview


class Store:
    """A table of values and queues that processes share; subclasses say where it lies.

    Text is stored as UTF-8. ``timeout`` bounds, in seconds, what waits and is not told how long; zero does not wait.
    What waits longer raises StoreTimeoutError, and the store stays usable. A store is closed when it is no longer used.
    """

    def __init__(self, timeout: float = DEFAULT_TIMEOUT) -> None:
        self.timeout = timeout

    def request(self, operation: Operation, fields: Sequence[bytes], timeout: float | None = None) -> list[bytes]:
        """Carry *operation* out, waiting up to *timeout* seconds (None: the store's own) where it has to wait."""
        raise NotImplementedError

    def clone(self) -> Store:
        """Return another store with the same content, for use beside this one."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what the store holds; it cannot be used afterwards. Closing twice is no error."""

    def set_timeout(self, timeout: float) -> None:
        """Wait *timeout* seconds from now on."""
        self.timeout = timeout

    def set(self, key: Key, value: Value) -> None:
        """Put *value* under *key*, in place of what was there."""
        self.request(Operation.SET, [name_of(key), bytes_of(value)])

    def get(self, key: Key, timeout: float | None = None) -> bytes:
        """Wait for *key* and return its value."""
        return self.request(Operation.GET, [name_of(key)], timeout)[0]

    def add(self, key: Key, amount: int) -> int:
        """Add *amount* to the number under *key*, 0 where there is none, and return the sum. It is kept as text.

        Raises ArgumentError where something else is stored, or the sum does not fit into 64 bits.
        """
        return int(self.request(Operation.ADD, [name_of(key), b"%d" % amount])[0])

    def append(self, key: Key, value: Value) -> None:
        """Put *value* after what is under *key*."""
        self.request(Operation.APPEND, [name_of(key), bytes_of(value)])

    def compare_set(self, key: Key, expected: Value, desired: Value) -> bytes:
        """Put *desired* under *key* if *expected* is there, or if nothing is there and *expected* is empty.

        Return what is there now; where nothing is, *expected*.
        """
        return self.request(Operation.COMPARE_SET, [name_of(key), bytes_of(expected), bytes_of(desired)])[0]

    def delete_key(self, key: Key) -> bool:
        """Remove the value under *key*, and tell whether there was one."""
        return bool(self.request(Operation.DELETE, [name_of(key)]))

    def check(self, keys: Sequence[Key]) -> bool:
        """Tell whether all *keys* have a value, or something in their queue."""
        return bool(self.request(Operation.CHECK, _names_of(keys)))

    def wait(self, keys: Sequence[Key], timeout: float | None = None) -> None:
        """Wait until all *keys* have a value, or something in their queue."""
        self.request(Operation.WAIT, _names_of(keys), timeout)

    def num_keys(self) -> int:
        """Return the number of values."""
        return len(self.list_keys())

    def list_keys(self) -> list[str]:
        """Return the keys that have a value, in no particular order."""
        return [key.decode("utf-8", "surrogateescape") for key in self.request(Operation.LIST, [])]

    def multi_get(self, keys: Sequence[Key], timeout: float | None = None) -> list[bytes]:
        """Wait for all *keys* and return their values."""
        return self.request(Operation.GET, _names_of(keys), timeout)

    def multi_set(self, keys: Sequence[Key], values: Sequence[Value]) -> None:
        """Put each of *values* under its one of *keys*, all at once."""
        if len(keys) != len(values):
            raise ArgumentError(f"there must be as many values as keys, got {len(keys)} keys and {len(values)} values")
        pairs = zip(_names_of(keys), map(bytes_of, values), strict=True)
        self.request(Operation.SET, [field for pair in pairs for field in pair])

    def queue_push(self, key: Key, value: Value) -> None:
        """Put *value* at the end of the queue of *key*."""
        self.request(Operation.QUEUE_PUSH, [name_of(key), bytes_of(value)])

    def queue_pop(self, key: Key, block: bool = True, timeout: float | None = None) -> bytes:
        """Take the first value from the queue of *key*, waiting for one if *block*.

        Raises QueueEmptyError where there is none and the caller does not wait.
        """
        if block:
            return self.request(Operation.QUEUE_POP, [name_of(key)], timeout)[0]
        found = self.request(Operation.QUEUE_TRY_POP, [name_of(key)])
        if not found:
            raise QueueEmptyError(f"the queue of key {key!r} is empty")
        return found[0]

    def queue_len(self, key: Key) -> int:
        """Return the number of values in the queue of *key*."""
        return int(self.request(Operation.QUEUE_LEN, [name_of(key)])[0])

    def barrier(self, key: Key, world_size: int, timeout: float | None = None) -> None:
        """Wait until *world_size* callers wait under *key*, which may be used again afterwards.

        A caller whose time is over has still arrived.
        """
        if world_size < 1:
            raise ArgumentError(f"world_size must be at least 1, got {world_size}")
        name = name_of(key)
        arrived = self.add(name + b"/num_members", 1)
        use = (arrived - 1) // world_size
        last = name + b"/last_member" + (b"/%d" % use if use else b"")
        if arrived % world_size == 0:
            self.set(last, b"1")
        self.wait([last], timeout)


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


def _names_of(keys: Sequence[Key]) -> list[bytes]:
    return [name_of(key) for key in keys]


def name_of(key: Key) -> bytes:
    """Return *key* as it is stored. Raises ArgumentError for text that has no UTF-8."""
    try:
        return key if isinstance(key, bytes) else key.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ArgumentError(f"a key must be text that UTF-8 can write, got {key!r}: {error}") from None


def bytes_of(value: Value) -> bytes:
    """Return *value* as it is stored. Raises ArgumentError for text that has no UTF-8."""
    try:
        return value.encode() if isinstance(value, str) else bytes(value)
    except UnicodeEncodeError as error:
        raise ArgumentError(f"a value must be bytes, or text that UTF-8 can write: {error}") from None


def timed_out(
    operation: Operation, fields: Sequence[bytes], missing: Sequence[bytes], seconds: float
) -> StoreTimeoutError:
    """Return the error for an *operation* that waited for *missing*, those of its *fields* that did not come."""
    if operation is Operation.AWAIT_JOINED:
        return StoreTimeoutError(f"{int(fields[0])} processes must join the store within {seconds:g} s, and did not")
    names = [key.decode("utf-8", "surrogateescape") for key in missing or fields]
    named = ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    thing = "the queue of key" if operation is Operation.QUEUE_POP else "key" if len(names) == 1 else "keys"
    return StoreTimeoutError(f"{thing} {named} did not come within {seconds:g} s")
