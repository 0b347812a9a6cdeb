"""Prints what changed between two records: ``shim conformance signatures --from "paddle 2.6.2" --to "paddle 3.3.1"``."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from shim.record import FRONTENDS, Signatures, read
from shim.record.changes import Change, changes_between

_MEANING = {
    "silent": ("[red]silent[/red]", "calls that worked go on working and mean something else"),
    "loud": ("[yellow]loud[/yellow]", "calls that worked raise"),
    "compatible": ("[green]compatible[/green]", "calls that worked work as before"),
}


def recorded_versions() -> list[str]:
    """Return the records there are, as ``framework version``."""
    return sorted(file.replace("-", " ", 1) for file in set(FRONTENDS.values()))


def record_named(text: str) -> Signatures:
    """Return the record called *text*, such as ``paddle 2.6.2``. Raises ValueError with the names there are."""
    if text not in recorded_versions():
        raise ValueError(f"there is no record {text!r}; there are {', '.join(recorded_versions())}")
    return read(text.replace(" ", "-", 1))


def print_changes(console: Console, old: Signatures, new: Signatures) -> Sequence[Change]:
    """Print what changed from *old* to *new* by what it breaks, with counts, and return it."""
    found = changes_between(old, new)
    console.print(f"{old.framework} {old.version} to {new.framework} {new.version}")
    for breaks, (label, meaning) in _MEANING.items():
        rows = [change for change in found if change.breaks == breaks]
        console.print(f"\n{label}: {len(rows)} changes; {meaning}")
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 2))
        for change in rows:
            table.add_row(escape(change.name), escape(change.what))
        if rows:
            console.print(table)
    return found
