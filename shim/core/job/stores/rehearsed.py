"""The stores of a rehearsal: no other process has them, and what the other ranks would store is there, if an earlier pass has seen it.

A number that this rank adds to grows as if every rank had added the same, in the order of the ranks.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence

from shim.core.job.stores.table import Operation, Table
from shim.core.job.variables import Variables, rehearsed_size


class Others:
    """What is known of the other ranks' stores: what *known* returns of a key there; and *told* hears of what this rank stores."""

    known: Callable[[str, bytes], bytes | None] | None = None
    told: Callable[[str, bytes, bytes], object] | None = None


others = Others()
_tables: dict[str, Table] = defaultdict(Table)  # of this process, by place


class RehearsedTable:
    """The store at *where*, for ``request`` as those have it who serve others."""

    def __init__(self, where: str) -> None:
        self._where = where
        variables = Variables(os.environ)
        self._size = rehearsed_size(variables)
        self._rank = int(variables.get("SHIM_RANK") or variables.get("RANK") or 0)

    def request(self, operation: Operation, fields: Sequence[bytes], seconds: float, own: float = 0.0) -> list[bytes]:
        """Carry *operation* out at once: a key for which it would wait has nothing in it."""
        del seconds, own
        table = _tables[self._where]
        if operation is Operation.ADD:
            amount = int(fields[1])
            (before,) = table.carry_out(Operation.ADD, [fields[0], b"0"]) or [b"0"]
            table.carry_out(Operation.ADD, [fields[0], b"%d" % (amount * self._size)])
            return [b"%d" % (int(before) + amount * (self._rank + 1))]
        if operation in (Operation.GET, Operation.WAIT, Operation.CHECK, Operation.COMPARE_SET):
            for key in table.missing(fields[:1] if operation is Operation.COMPARE_SET else fields):
                value = others.known(self._where, key) if others.known is not None else None
                if value is not None or operation is Operation.GET:
                    table.carry_out(Operation.SET, [key, value or b""])
        was_missing = bool(table.missing(fields[:1]))
        result = table.carry_out(operation, fields)
        if others.told is not None and (
            operation is Operation.SET or (operation is Operation.COMPARE_SET and was_missing)
        ):
            pairs = fields if operation is Operation.SET else [fields[0], *(result or ())]
            for key, value in zip(pairs[::2], pairs[1::2], strict=True):
                others.told(self._where, key, value)
        if result is None:  # it would wait for another rank
            return [b""] if operation is Operation.QUEUE_POP else []
        return result

    def first(self, seconds: float, before: Callable[[], object] = bool) -> None:
        """There is nobody to join."""

    def close(self) -> None:
        """What is stored stays for the process's other stores at this place."""


def is_rehearsed() -> bool:
    return rehearsed_size(Variables(os.environ)) > 0
