"""The command ``shim``. A subcommand's module is imported when it is asked for."""

from __future__ import annotations

import importlib
import os
import shlex
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from shim import __version__
from shim.cli.help_texts import tidied, tidy

_COMMANDS = {  # name: module that has a function or a group of commands called so
    "bench": "shim.cli.bench",
    "conformance": "shim.cli.conformance",
    "doctor": "shim.cli.doctor",
    "port": "shim.cli.port",
    "rehearse": "shim.cli.rehearse",
    "run": "shim.cli.run",
    "trace": "shim.cli.trace",
    "version": "shim.cli.version",
}
_OF_SCRIPTS = {"allow_interspersed_args": False, "token_normalize_func": lambda name: name.replace("_", "-")}
_SETTINGS = {
    "rehearse": _OF_SCRIPTS,
    "run": _OF_SCRIPTS,
}  # what follows the script is the script's; torchrun's options may have either dash
_NUMBERS = {"int_parsing": "must be a whole number", "float_parsing": "must be a number"}


def _with_number_in_front(ctx: Any) -> str:
    """Return how to write a command that misses the number of ranks because that follows the script, else nothing."""
    given = {} if ctx is None else ctx.params
    option, number = [*(given.get("arguments") or ()), "", ""][:2]
    if "ranks" in given or option not in ("-n", "-np", "--nproc-per-node") or not number.isdigit():
        return ""
    return f"Write it before the script: {ctx.command_path} {option} {number} {shlex.quote(given['script'])}"


class _Commands(TyperGroup):
    """The subcommands, imported by need."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(_COMMANDS)  # where typer looks for a name like one that is not known

    def invoke(self, ctx: Any) -> Any:
        """Have every value that is refused in the message, which pydantic's words leave out, and where a missing -n belongs."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = _with_number_in_front(error.ctx) or error.message
            for found in getattr(error.__cause__, "errors", list)()[:1]:
                error.message = f"{_NUMBERS.get(found['type'], error.message)}, got {found['input']!r}"
            raise

    def get_params(self, ctx: Any) -> Any:
        return [tidy(one) for one in super().get_params(ctx)]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        found = getattr(importlib.import_module(_COMMANDS[cmd_name]), cmd_name)
        if isinstance(found, typer.Typer):
            return tidied(typer.main.get_command(found))
        single = typer.Typer(add_completion=False)
        single.command(cmd_name, context_settings=_SETTINGS.get(cmd_name))(found)
        return tidied(typer.main.get_command(single))


_app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shim {__version__}")
        raise typer.Exit


@_app.callback()
def _shim(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """One engine behind the collective-communication APIs of PyTorch, PaddlePaddle and MindSpore."""


def _fill_standard_descriptors() -> None:
    """Open what was closed when this process began: another file would get the number, and what is printed would go there."""
    while (file := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(file)


def main() -> None:
    """Run the command line of this process, and exit."""
    _fill_standard_descriptors()
    _app(prog_name="shim")
