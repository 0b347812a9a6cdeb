"""``shim trace run``."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from shim.cli import run as ranks_of


def run(
    script: ranks_of.Script,
    ranks: Annotated[
        int, typer.Option("-n", "-np", "--nproc-per-node", metavar="N", help="The number of ranks.", show_default=False)
    ],
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the recording goes: a file for each rank.")] = Path(
        "shim-trace"
    ),
    digests: Annotated[
        bool, typer.Option("--digests", help="Also record 64 bits of the values of all inputs and outputs.")
    ] = False,
    arguments: ranks_of.Arguments = None,
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is a module to run, as with `python -m`.")] = False,
    as_installed: Annotated[
        bool, typer.Option("--as-installed", help="Run a program that imports the frameworks themselves.")
    ] = False,
    log_dir: ranks_of.LogDir = None,
    keep_going: ranks_of.KeepGoing = False,
    max_restarts: ranks_of.MaxRestarts = 0,
    env: ranks_of.Env = None,
) -> None:
    """Run SCRIPT as N ranks, as `shim run` does, and record their collectives.

    Options of `shim trace run` come before SCRIPT.
    A folder that has a recording is refused. The exit status is that of `shim run`.
    """
    from shim.core.tracing.layout import SUFFIX

    folder = to.absolute()
    if folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"{to} is a file; name a folder", param_hint="--to")
    if any(folder.glob(f"*{SUFFIX}")):
        hint = f"name another folder with --to FOLDER, or remove this one: rm -r {shlex.quote(str(to))}"
        raise typer.BadParameter(f"{to} has a recording already; {hint}", param_hint="--to")
    os.environ["SHIM_TRACE"] = str(folder)  # the ranks' environments are made of this one
    os.environ["SHIM_TRACE_DIGESTS"] = "1" if digests else "0"
    try:
        ranks_of.run(script, ranks, arguments, module, as_installed, log_dir, keep_going, max_restarts, env=env)
    finally:
        found = len({file.name.partition(".")[0] for file in folder.glob(f"*{SUFFIX}")})
        if found:
            typer.echo(
                f"shim trace: {found} of {ranks} ranks are recorded in {to}; `shim trace show {to}` shows it", err=True
            )
        else:
            typer.echo("shim trace: nothing is recorded, as no rank has initialised shim's world", err=True)
