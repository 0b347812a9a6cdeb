"""A group of commands of which one is meant where none is named: ``shim bench --quick`` is ``shim bench run --quick``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.core import TyperGroup


def with_default(command: str, takes_paths: bool = False) -> type[TyperGroup]:
    """Return the class of a group in which *command* is meant when the arguments begin with an option, or there are none.

    Where it *takes_paths*, it is meant as well when they begin with a path, unless a command has its name: a file or folder that
    is there, or a word with a dot or a slash, of which *command* then says that it is not there.
    """

    class WithDefault(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            is_option = bool(args) and args[0].startswith("-") and args[0] not in self.get_help_option_names(ctx)
            if not args or is_option or (takes_paths and self._is_path(ctx, args[0])):
                args = [command, *args]
            return super().parse_args(ctx, args)

        def _is_path(self, ctx: Any, word: str) -> bool:
            return word not in self.list_commands(ctx) and (Path(word).exists() or "." in word or "/" in word)

    return WithDefault
