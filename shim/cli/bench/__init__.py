"""``shim bench``: our collectives beside other libraries', and what is promised held against a result."""

from __future__ import annotations

import typer

from shim.cli.bench.check import check
from shim.cli.bench.run import run
from shim.cli.bench.show import show
from shim.cli.default_command import with_default

bench = typer.Typer(name="bench", cls=with_default("run"), add_completion=False)
bench.command("run")(run)
bench.command("check")(check)
bench.command("show")(show)


@bench.callback()
def _bench() -> None:
    """Measure shim's collectives beside gloo, Open MPI, MPICH and the least time that copying takes.

    `run` is the default command: `shim bench --quick` is `shim bench run --quick`.
    """
