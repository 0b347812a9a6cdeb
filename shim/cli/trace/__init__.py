"""``shim trace``: records a job's collectives, and shows, compares and replays recordings."""

from __future__ import annotations

import typer

from shim.cli.trace.diff import diff
from shim.cli.trace.replay import replay
from shim.cli.trace.run import run
from shim.cli.trace.show import show

trace = typer.Typer(name="trace", add_completion=False, no_args_is_help=True)
trace.command(
    "run",
    context_settings={"allow_interspersed_args": False, "token_normalize_func": lambda name: name.replace("_", "-")},
)(run)
trace.command("show")(show)
trace.command("diff")(diff)
trace.command("replay")(replay)


@trace.callback()
def _trace() -> None:
    """Record every collective of every rank, and show, compare or replay the recording.

    `SHIM_TRACE=FOLDER` records under any launcher.
    """
