"""Options that several commands have, and what is to be said of their values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from shim.conformance.kinds import KINDS, is_installed
from shim.conformance.plan import FRAMEWORKS
from shim.core.engines.choosing import engine_names

_ALL = "all"
_LOG_WIDTH = 120  # columns where output is no terminal and COLUMNS does not say

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILES",
        exists=True,
        help="Files and folders with your own examples: Markdown, reStructuredText, HTML, Python.",
        show_default=False,
    ),
]
Tensors = Annotated[
    str | None,
    typer.Option(
        "--tensors",
        metavar="KINDS",
        help=f"Kinds of tensor, separated by commas: {','.join(KINDS)}; or all. Default: examples in docstrings use their "
        "own, everything else uses all that are installed.",
    ),
]
Frameworks = Annotated[
    list[str] | None,
    typer.Option(
        "--framework", metavar="NAME", help=f"Only examples of this framework: {', '.join(FRAMEWORKS)}. Repeatable."
    ),
]
Examples = Annotated[
    list[str] | None,
    typer.Option(
        "--example", metavar="NAME", help="Only this example, or those of this function; * and ? match. Repeatable."
    ),
]
Engine = Annotated[
    str | None,
    typer.Option("--engine", metavar="NAME", help=f"Use this engine for all groups: {', '.join(engine_names())}."),
]
Hosts = Annotated[
    int | None,
    typer.Option(
        "--hosts",
        min=1,
        metavar="N",
        help="With --engine hierarchical, c10d or mpi: the ranks count as being on N hosts, although all are on this one.",
    ),
]


def use_engine(engine: str | None, hosts: int | None) -> None:
    """Have the ranks that this process starts use *engine*, and count as being on so many *hosts*."""
    if engine is not None and engine not in engine_names():
        raise typer.BadParameter(f"--engine must be one of {', '.join(engine_names())}, got {engine!r}")
    if engine is not None:
        os.environ["SHIM_ENGINE"] = engine
    if hosts is not None:
        os.environ["SHIM_EMULATED_HOSTS"] = str(hosts)


def console_of() -> Console:
    """Return the console to print on."""
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _LOG_WIDTH
    return console


def chosen(option: str, given: Sequence[str] | str | None, choices: Sequence[str]) -> list[str] | None:
    """Return the names given, one by one or with commas between, or None where there are none.

    Raises BadParameter for a name that is no choice.
    """
    if given is None or (not isinstance(given, str) and not given):
        return None
    names = [name.strip() for each in ([given] if isinstance(given, str) else given) for name in each.split(",")]
    unknown = [name for name in names if name not in choices]
    if unknown:
        raise typer.BadParameter(
            f"{option} does not know {', '.join(map(repr, unknown))}; it knows {', '.join(choices)}"
        )
    return names


def chosen_kinds(given: str | None) -> list[str] | None:
    """Return the kinds of tensor that ``--tensors`` names, those that are installed for "all", None where there is no option.

    Raises BadParameter for a name that is no kind's.
    """
    if given == _ALL:
        return [kind for kind in KINDS if is_installed(kind)]
    return chosen("--tensors", given, KINDS)


def check_writable(option: str, file: Path | None) -> None:
    """Raise BadParameter where *file* is to be written and cannot be: there is no folder for it, or it is one, or not ours to write."""
    if file is not None and not file.parent.is_dir():
        raise typer.BadParameter(f"{option}: there is no folder {file.parent}")
    if file is not None and file.is_dir():
        raise typer.BadParameter(f"{option}: {file} is a folder")
    if file is not None and not os.access(file if file.exists() else file.parent, os.W_OK):
        raise typer.BadParameter(f"{option}: {file} cannot be written")
