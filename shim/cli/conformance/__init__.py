"""``shim conformance``: the frameworks' documents, signatures and tables, executed on this machine.

``run`` is the default command: ``shim conformance README.md`` is ``shim conformance run README.md``.
"""

from __future__ import annotations

import typer

from shim.cli.conformance.listing import list_examples
from shim.cli.conformance.run import run
from shim.cli.conformance.signatures import signatures
from shim.cli.conformance.soak import soak
from shim.cli.conformance.tables import tables
from shim.cli.default_command import with_default

conformance = typer.Typer(name="conformance", cls=with_default("run", takes_paths=True), add_completion=False)
conformance.command("run")(run)
conformance.command("signatures")(signatures)
conformance.command("tables")(tables)
conformance.command("soak")(soak)
conformance.command("list")(list_examples)


@conformance.callback()
def _conformance() -> None:
    """Run the frameworks' documented examples, and compare signatures and tables.

    `run` is the default command: `shim conformance README.md` is `shim conformance run README.md`.
    """
