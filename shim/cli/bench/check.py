"""``shim bench check``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

_WIDTH = 200  # columns where output is no terminal and COLUMNS does not say
_STYLES = {"holds": "green", "does not hold": "red", "not measured": "yellow", "does not apply": "dim"}


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A result that `shim bench --json FILE` wrote.")],
) -> None:
    """Compare a result with the project's promises of speed, and print each promise with its figure.

    The exit status is 0 if all promises hold, and 1 if one does not hold or was not measured.
    Promises that do not apply to the machine do not count.
    """
    from rich.console import Console
    from rich.table import Table

    from shim.bench.results.comparison import Comparison
    from shim.bench.results.promises import findings
    from shim.bench.results.record import read_record
    from shim.bench.results.table import machine_lines

    try:
        record = read_record(file)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDTH
    console.print("\n".join(machine_lines(record)), markup=False)
    table = Table("promise", "figure", "verdict")
    found = findings(Comparison(record))
    for one in found:
        missing = f" ({one.missing} case{'s' * (one.missing != 1)} without a figure)" if one.missing else ""
        table.add_row(one.promise, f"{one.told}{missing}", one.verdict, style=_STYLES[one.verdict])
    console.print(table)
    if not all(one.is_kept for one in found):
        raise typer.Exit(1)
