"""``shim conformance tables``."""

from __future__ import annotations

import typer

from shim.cli.conformance.options import Tensors, chosen_kinds, console_of


def tables(tensors: Tensors = None) -> None:
    """Run every operation and every dtype through every frontend, and show the frameworks' own results beside them.

    The exit status is 0 if all cells are as expected and every cell that --tensors selects has run, and 1 otherwise.
    """
    from shim.conformance.kinds import select_kinds
    from shim.conformance.progress import progress_bar
    from shim.conformance.report import print_tables
    from shim.conformance.tables.cells import planned, run_cells
    from shim.conformance.tables.columns import CELLS

    selection = select_kinds(chosen_kinds(tensors))
    console = console_of()
    calls = planned(CELLS, selection)
    with progress_bar(calls, console, "cells", " tensors", lambda cell: cell.name) as on_result:
        run = run_cells(CELLS, selection, on_result)
    print_tables(run, console)
    if not run.passed:
        raise typer.Exit(1)
