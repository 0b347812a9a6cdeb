"""The recordings that a command is given, and its words for those that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from shim.trace.calls import Recording

UNREADABLE = 2  # exit status


def recording_in(path: Path, run: int | None = None) -> Recording:
    """Return the recording at *path*, or end the command with its words and status 2."""
    from shim.errors import ShimError
    from shim.trace.flight_recorder import is_dump_folder, read_dumps
    from shim.trace.reading import read_recording

    try:
        return read_dumps(path) if is_dump_folder(path) else read_recording(path, run)
    except ShimError as error:
        refuse(str(error))


def refuse(why: str) -> NoReturn:
    """End the command, saying *why*."""
    typer.echo(f"shim trace: {why}", err=True)
    raise typer.Exit(UNREADABLE)
