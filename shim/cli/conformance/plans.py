"""What the options and files of a command choose, or what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from shim.cli.conformance.options import chosen, chosen_kinds
from shim.conformance.plan import FRAMEWORKS, Plan, make_plan, plan_of_files


def plan_from(
    paths: list[Path] | None,
    framework: list[str] | None,
    example: list[str] | None,
    tensors: str | None,
    reference: bool,
    console: Console,
) -> Plan:
    """Return the plan for the installed frameworks, or for *paths* where there are any; name on *console* the files that have no examples.

    Raises BadParameter for a name that is nothing's, Exit where a framework cannot be imported, or files are not as they should be.
    """
    frameworks, patterns = chosen("--framework", framework, FRAMEWORKS), example or []
    if paths:
        plan = _of_files(paths, frameworks, patterns, tensors, reference)
    else:
        plan = _of_installed(frameworks, patterns, tensors, reference, console)
    if plan.unknown:
        raise typer.BadParameter(f"--example: {'; '.join(plan.unknown)}")
    if paths and not plan.sources and not plan.absent:
        raise typer.BadParameter(f"there are no examples of --framework in {', '.join(map(str, paths))}")
    if plan.without:
        console.print(Text(f"without examples: {', '.join(map(str, plan.without))}", style="dim"))
    return plan


def _of_installed(
    frameworks: list[str] | None,
    patterns: list[str],
    tensors: str | None,
    reference: bool,
    console: Console,
) -> Plan:
    kinds = chosen_kinds(tensors)
    try:
        with console.status("reading the installed frameworks' documentation"):
            return make_plan(frameworks, patterns, kinds, reference)
    except ImportError as error:
        typer.echo(error, err=True)
        raise typer.Exit(2) from None


def _of_files(
    paths: list[Path],
    frameworks: list[str] | None,
    patterns: list[str],
    tensors: str | None,
    reference: bool,
) -> Plan:
    if tensors is not None:
        raise typer.BadParameter("--tensors cannot be used with FILES: their examples choose their own tensors")
    try:
        return plan_of_files(paths, frameworks, patterns, reference)
    except OSError as error:
        raise typer.BadParameter(str(error)) from None
    except ValueError as error:
        typer.echo(error, err=True)  # a line for each problem, as compilers write it
        raise typer.Exit(2) from None
