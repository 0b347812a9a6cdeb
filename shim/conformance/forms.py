"""Tables in the form that a terminal has room for: what would be cut off or broken within a word is shown in another one."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

_NO_LIMIT = 10_000  # columns


def fits(table: Table, console: Console, besides: int = 0) -> bool:
    """Tell whether *table* stands on *console* without a line of its cells being folded or cut, and leaves so many columns *besides*."""
    room = console.options.update(max_width=_NO_LIMIT)
    return Measurement.get(console, room, table).maximum + besides <= console.width


def first_that_fits(console: Console, *tables: Table) -> Table:
    """Return the first of *tables* that fits on *console*, the last one where none does."""
    return next((table for table in tables if fits(table, console)), tables[-1])
