"""``shim conformance``: the frameworks' documents, signatures and tables, executed on this machine.

``run`` is what happens without a command: ``shim conformance --framework torch`` is ``shim conformance run --framework torch``.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from shim.cli.conformance.listing import list_examples
from shim.cli.conformance.run import run
from shim.cli.conformance.signatures import signatures
from shim.cli.conformance.tables import tables

__all__ = ["conformance"]

_DEFAULT = "run"


class _WithDefault(TyperGroup):
    """Commands of which one is meant when the arguments begin with an option, or there are none."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in self.get_help_option_names(ctx)):
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


conformance = typer.Typer(name="conformance", cls=_WithDefault, add_completion=False)
conformance.command("run")(run)
conformance.command("signatures")(signatures)
conformance.command("tables")(tables)
conformance.command("list")(list_examples)


@conformance.callback()
def _conformance() -> None:
    """Run the frameworks' documented examples, and compare signatures and tables.

    Without a command, `run` is meant; its options may follow directly: `shim conformance --framework torch`.
    """
