"""``shim run``: start the ranks of a program on this host."""

from __future__ import annotations

import os
import pkgutil
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from shim.launch.identity import rank_variables
from shim.launch.processes import run_ranks

__all__ = ["run"]


def run(
    program: Annotated[
        list[str], typer.Argument(metavar="SCRIPT", help="The program and its arguments.", show_default=False)
    ],
    ranks: Annotated[int, typer.Option("-n", metavar="N", help="How many ranks to start.", show_default=False)],
    module: Annotated[
        bool, typer.Option("-m", help="SCRIPT is the name of a module, run as `python -m` runs it.")
    ] = False,
    as_installed: Annotated[
        bool,
        typer.Option(
            "--as-installed",
            help="Run a program that imports the installed frameworks themselves: its imports of their collectives get ours.",
        ),
    ] = False,
    log_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Also write each rank's output to DIR/rank0.stdout, DIR/rank0.stderr, and so on."
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Set a variable for the ranks; may be given several times."),
    ] = None,
) -> None:
    """Run SCRIPT as N ranks of this Python on this host.

    Options of `shim run` come before SCRIPT; what follows it is passed to the program.
    Each line of output has its rank in front. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to the ranks.
    When a rank fails the others are ended, its traceback is shown last, and its status, or 128 plus the number of the
    signal that killed it, is the exit status.
    """
    if ranks < 1:
        raise typer.BadParameter(f"-n must be at least 1, got {ranks}")
    if not module:
        _check_script(program[0])
    _make_folder(log_dir)
    through = ["-m", "shim.substitution"] if as_installed else []
    python = [sys.executable, *through, *(["-m"] if module else []), *program]
    raise typer.Exit(run_ranks(python, ranks, _environment(env or []), log_dir))


def _check_script(script: str) -> None:
    if Path(script).exists():
        finder = pkgutil.get_importer(script)  # of a folder or a zip file, in which Python looks for this name
        if finder is not None and finder.find_spec("__main__") is None:
            raise typer.BadParameter(f"there is no __main__.py in {script!r}")
        return
    hint = "; options of `shim run` come before the script" if script.startswith("-") else ""
    if not script.endswith(".py") and "/" not in script:
        hint = hint or f"; `-m {script}` runs a module"
    raise typer.BadParameter(f"there is no script {script!r}{hint}")


def _make_folder(log_dir: Path | None) -> None:
    if log_dir is None:
        return
    try:
        log_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"--log-dir: {error}") from None
    if not os.access(log_dir, os.W_OK | os.X_OK):
        raise typer.BadParameter(f"--log-dir: no files can be made in {log_dir}")


def _environment(settings: list[str]) -> dict[str, str]:
    """Return what the ranks' environment has besides this process's and who they are."""
    chosen = {"PYTHONUNBUFFERED": os.environ.get("PYTHONUNBUFFERED") or "1", **_address()}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"--env must be NAME=VALUE, got {setting!r}")
        if name in rank_variables(0, 1, ""):
            raise typer.BadParameter(f"--env cannot set {name}, which tells a rank who it is")
        chosen[name] = value
    return chosen


def _address() -> dict[str, str]:
    """Return MASTER_ADDR and MASTER_PORT for programs that also use a framework's own communication."""
    address, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    if address and port:
        return {"MASTER_ADDR": address, "MASTER_PORT": port}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
