"""What a store holds, and what each operation does to it, without waiting; every kind of store keeps one table."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from enum import IntEnum
from typing import Generic, TypeVar

from shim.core.sockets.frames import LARGEST, packed_values
from shim.errors import ArgumentError

VERSION = b"shim  v2"  # of what stores and their servers say to each other; as long as those before it, so that each reads the other's
_Fields = Sequence[bytes]
_Asker = TypeVar("_Asker", bound=Hashable)


class Operation(IntEnum):
    """What a store can be asked; the numbers travel between processes, so that none may be used for something else."""

    GREET = 0  # a version, from both ends first; the table knows nothing of it
    SET = 1  # key, value, key, value ...
    GET = 2  # keys -> values; waits for all of them
    ADD = 3  # key, decimal number -> decimal sum
    APPEND = 4  # key, value
    COMPARE_SET = 5  # key, expected, desired -> what is there afterwards
    DELETE = 6  # key -> one field if it was there
    CHECK = 7  # keys -> one field if all are there
    WAIT = 8  # keys
    LIST = 9  # -> keys
    QUEUE_PUSH = 10  # key, value
    QUEUE_POP = 11  # key -> value; waits for one
    QUEUE_TRY_POP = 12  # key -> value, or no field
    QUEUE_LEN = 13  # key -> decimal number
    JOIN = 14  # -> decimal number of those that have joined, the caller included
    AWAIT_JOINED = 15  # decimal number; waits until as many have joined
    LEAVE = 16  # -> decimal number of those that have left, the caller included


OF_KEYS = frozenset({Operation.GET, Operation.CHECK, Operation.WAIT})  # whose fields are all keys
WAITING = frozenset({Operation.GET, Operation.WAIT, Operation.QUEUE_POP, Operation.AWAIT_JOINED})
MUTATING = frozenset(
    {
        Operation.SET,
        Operation.ADD,
        Operation.APPEND,
        Operation.COMPARE_SET,
        Operation.DELETE,
        Operation.QUEUE_PUSH,
        Operation.QUEUE_POP,
        Operation.QUEUE_TRY_POP,
        Operation.JOIN,
        Operation.LEAVE,
    }
)


class Table:
    """Values and queues under keys. A key may have both; a value and a queue of the same key know nothing of each other.

    Not for several threads at once. The same operations in the same order give the same table.
    """

    __slots__ = ("_queues", "_values", "joined", "left")

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._queues: dict[bytes, deque[bytes]] = {}
        self.joined = 0
        self.left = 0

    def carry_out(self, operation: Operation, fields: _Fields) -> list[bytes] | None:
        """Carry *operation* out and return its result, or None, with nothing changed, where it would have to wait.

        Raises ArgumentError, with nothing changed, for fields that the operation cannot take.
        """
        result: list[bytes] | None = getattr(self, f"_{operation.name.lower()}")(*fields)
        return result

    def missing(self, keys: _Fields) -> list[bytes]:
        """Return those of *keys* that have neither a value nor a queue with something in it."""
        return [key for key in keys if key not in self._values and not self._queues.get(key)]

    def _set(self, *pairs: bytes) -> list[bytes]:
        self._values.update(zip(pairs[::2], pairs[1::2], strict=True))
        return []

    def _get(self, *keys: bytes) -> list[bytes] | None:
        try:
            return [self._values[key] for key in keys]
        except KeyError:
            return None

    def _add(self, key: bytes, amount: bytes) -> list[bytes]:
        there = self._values.get(key, b"0")
        total = _integer(there, key) + _integer(amount, key)
        if not -(2**63) <= total < 2**63:
            raise ArgumentError(f"the sum under key {_shown(key)} must fit into 64 bits, got {total}")
        self._values[key] = b"%d" % total
        return [self._values[key]]

    def _append(self, key: bytes, value: bytes) -> list[bytes]:
        self._values[key] = self._values.get(key, b"") + value
        return []

    def _compare_set(self, key: bytes, expected: bytes, desired: bytes) -> list[bytes]:
        there = self._values.get(key)
        if there is None and expected:
            return [expected]
        if there is None or there == expected:
            self._values[key] = desired
        return [self._values[key]]

    def _delete(self, key: bytes) -> list[bytes]:
        return [] if self._values.pop(key, None) is None else [b"1"]

    def _check(self, *keys: bytes) -> list[bytes]:
        return [] if self.missing(keys) else [b"1"]

    def _wait(self, *keys: bytes) -> list[bytes] | None:
        return None if self.missing(keys) else []

    def _list(self) -> list[bytes]:
        return list(self._values)

    def _queue_push(self, key: bytes, value: bytes) -> list[bytes]:
        self._queues.setdefault(key, deque()).append(value)
        return []

    def _queue_pop(self, key: bytes) -> list[bytes] | None:
        return self._queue_try_pop(key) or None

    def _queue_try_pop(self, key: bytes) -> list[bytes]:
        queue = self._queues.get(key)
        if not queue:
            return []
        value = queue.popleft()
        if not queue:
            del self._queues[key]
        return [value]

    def _queue_len(self, key: bytes) -> list[bytes]:
        return [b"%d" % len(self._queues.get(key, ()))]

    def _join(self) -> list[bytes]:
        self.joined += 1
        return [b"%d" % self.joined]

    def _leave(self) -> list[bytes]:
        self.left += 1
        return [b"%d" % self.left]

    def _await_joined(self, number: bytes) -> list[bytes] | None:
        return [] if self.joined >= int(number) else None


class SharedTable(Generic[_Asker]):
    """A table of which several ask. *answer* gets who asked and the result, which may have to wait for what another one changes.

    ``waiting`` has who waits for what, the longest waiting first; whoever is taken out of it waits no longer.
    """

    def __init__(self, answer: Callable[[_Asker, list[bytes]], object]) -> None:
        self._table = Table()
        self._answer = answer
        self.missing = self._table.missing
        self.waiting: dict[_Asker, tuple[Operation, _Fields]] = {}

    def ask(self, asker: _Asker, operation: Operation, fields: _Fields) -> bool:
        """Carry *operation* out, and tell whether it is answered. Raises what ``Table.carry_out`` does."""
        result = self._table.carry_out(operation, fields)
        if result is None:
            self.waiting[asker] = operation, fields
            return False
        self._answer(asker, result)
        if operation in MUTATING:
            changed = frozenset(fields)  # the keys among them; of one that joins there are none
            for other, request in list(self.waiting.items()):
                if changed and changed.isdisjoint(request[1]):
                    continue
                result = self._table.carry_out(*request)
                if result is not None:
                    del self.waiting[other]
                    self._answer(other, result)
        return True


def packed(values: _Fields) -> bytes:
    """Return *values* as the body of a frame. Raises ArgumentError for more than one can have."""
    body = packed_values(values)
    if len(body) > LARGEST:
        raise ArgumentError(f"keys and values must be at most {LARGEST} bytes together, got {len(body)}")
    return body


def _integer(value: bytes, key: bytes) -> int:
    """Return the number that *value*, under *key*, is the decimal text of."""
    digits = value[1:] if value[:1] == b"-" else value
    if not digits.isdigit() or len(digits) > 20:
        raise ArgumentError(f"key {_shown(key)} must hold a whole number to be added to, got {value[:40]!r}")
    return int(value)


def _shown(key: bytes) -> str:
    return repr(key.decode("utf-8", "surrogateescape"))
