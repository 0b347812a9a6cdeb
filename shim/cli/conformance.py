"""``shim conformance``: run the frameworks' documented examples on this machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

__all__ = ["conformance"]

_LOG_WIDTH = 120  # columns where output is no terminal and COLUMNS does not say


def conformance(
    tensors: Annotated[
        str | None,
        typer.Option(metavar="KINDS", help="Kinds of tensor, with commas between: numpy,torch,paddle,mindspore."),
    ] = None,
    document: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this document; may be given several times.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the full result to FILE.")
    ] = None,
    show_cases: Annotated[bool, typer.Option("--list", help="Show the cases and run nothing.")] = False,
    signatures: Annotated[
        bool,
        typer.Option("--signatures", help="Compare all signatures with the recorded and the installed ones instead."),
    ] = False,
    tables: Annotated[
        bool,
        typer.Option(
            "--tables", help="Carry out the tables of operations and dtypes instead, beside the frameworks' own cells."
        ),
    ] = False,
) -> None:
    """Run the examples of the frameworks' documents, with every kind of tensor that is installed.

    Every rank's result is checked against the document and against an oracle that shares no code with the engine.
    The exit status is 0 when all that ran passed and nothing that --tensors asked for was missing, 1 otherwise. Of the
    tables every cell has to run, unless --tensors leaves kinds out.
    """
    from shim.conformance import report, runner
    from shim.conformance.cases import DOCUMENTS
    from shim.conformance.kinds import KINDS

    console = _console()
    if tables:
        if document or json_file or show_cases or signatures:
            raise typer.BadParameter("--tables goes with --tensors alone")
        _carry_out_tables(console, _chosen("--tensors", None if tensors is None else tensors.split(","), KINDS))
        return
    if signatures:
        if tensors or document or json_file or show_cases:
            raise typer.BadParameter("--signatures goes with no other option")
        _compare_signatures(console)
        return
    names = _chosen("--document", document, [page.name for page in DOCUMENTS])
    pages = [page for page in DOCUMENTS if names is None or page.name in names]
    kinds = _chosen("--tensors", None if tensors is None else tensors.split(","), KINDS)
    if json_file is not None and not json_file.parent.is_dir():
        raise typer.BadParameter(f"--json: there is no folder {json_file.parent}")
    if show_cases:
        report.print_cases(pages, console)
        return
    selection = runner.select_kinds(kinds)
    with report.progress_of(pages, selection, console) as on_result:
        run = runner.run_documents(pages, selection, on_result)
    report.print_report(run, console)
    if json_file is not None:
        json_file.write_text(json.dumps(report.as_json(run), indent=1) + "\n", encoding="utf-8")
    if not run.passed:
        raise typer.Exit(1)


def _compare_signatures(console: Console) -> None:
    from shim.conformance.signatures.report import print_comparison

    if not print_comparison(console):
        raise typer.Exit(1)


def _carry_out_tables(console: Console, kinds: list[str] | None) -> None:
    from shim.conformance.runner import select_kinds
    from shim.conformance.tables import report, runner
    from shim.conformance.tables.columns import CELLS

    selection = select_kinds(kinds)
    with report.progress_of(CELLS, selection, console) as on_result:
        run = runner.run_cells(CELLS, selection, on_result)
    report.print_tables(run, console)
    if not run.passed:
        raise typer.Exit(1)


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _LOG_WIDTH
    return console


def _chosen(option: str, given: list[str] | None, choices: list[str] | tuple[str, ...]) -> list[str] | None:
    """Return the names given, or None when there are none. Raises BadParameter for a name that is no choice."""
    if not given:
        return None
    names = [name.strip() for name in given]
    unknown = [name for name in names if name not in choices]
    if unknown:
        raise typer.BadParameter(
            f"{option} does not know {', '.join(map(repr, unknown))}; it knows {', '.join(choices)}"
        )
    return names
