"""A group of commands of which one is meant where none is named: ``shim bench --quick`` is ``shim bench run --quick``."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

__all__ = ["with_default"]


def with_default(command: str) -> type[TyperGroup]:
    """Return the class of a group in which *command* is meant when the arguments begin with an option, or there are none."""

    class WithDefault(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            if not args or (args[0].startswith("-") and args[0] not in self.get_help_option_names(ctx)):
                args = [command, *args]
            return super().parse_args(ctx, args)

    return WithDefault
