"""``shim bench show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A result that `shim bench --json FILE` wrote.")],
    plot: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Draw time against size into FOLDER, as PNG and SVG.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the medians as Markdown tables.")] = False,
) -> None:
    """Print the tables of a result again, without measuring."""
    from rich.console import Console

    from shim.bench.results.plots import missing_for_plots
    from shim.bench.results.plots import plot as draw
    from shim.bench.results.record import folder_refusal, read_record
    from shim.bench.results.table import markdown_of, print_record

    if plot is not None and (missing := missing_for_plots()):
        raise typer.BadParameter(missing, param_hint="--plot")
    if plot is not None and (refused := folder_refusal(plot)):
        raise typer.BadParameter(str(refused), param_hint="--plot")
    try:
        record = read_record(file)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    if markdown:
        typer.echo(markdown_of(record))
    else:
        print_record(record, Console(highlight=False))
    if plot is not None:
        files = draw(record, plot)
        typer.echo(f"{len(files)} pictures in {plot}", err=markdown)
