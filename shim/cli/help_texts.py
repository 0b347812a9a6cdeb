"""Makes typer's help read as that of other commands does: flags have no type, and arguments stand as they are typed."""

from __future__ import annotations

from typing import Any


def tidied(command: Any) -> Any:
    """Return *command*, whose help, and that of the commands below it, is tidy."""
    get_params = command.get_params
    command.get_params = lambda context: [tidy(one) for one in get_params(context)]
    for below in getattr(command, "commands", {}).values():
        tidied(below)
    return command


def tidy(parameter: Any) -> Any:
    """Return *parameter*: a flag whose help says no ``<bool>``, or an argument that is SCRIPT or [FILES]... in the usage, without a type."""
    if parameter.param_type_name == "argument":
        name = parameter.metavar or parameter.name.upper()
        usage = (name if parameter.required else f"[{name}]") + "..." * (parameter.nargs != 1)
        parameter.get_usage_pieces = lambda context: [usage]
        parameter.display_type_rich = lambda ctx: None
    elif getattr(parameter, "is_flag", False) and parameter.metavar is None:
        parameter.metavar = ""
    return parameter
