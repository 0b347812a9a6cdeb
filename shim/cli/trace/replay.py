"""``shim trace replay``."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shim.cli.trace.recordings import recording_in, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shim.trace.calls import Recording
    from shim.trace.replaying.rank import RankOutcome

_MOST = 8  # errors that are shown


def replay(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A recording, or torch's Flight Recorder dumps.")],
    ranks: Annotated[
        int | None,
        typer.Option("-n", metavar="N", min=1, help="Replay the first N ranks. Default: all that are recorded."),
    ] = None,
    run: Annotated[
        int | None, typer.Option(metavar="N", help="Which run, if the folder has several. Default: the last.")
    ] = None,
    pauses: Annotated[
        bool, typer.Option("--pauses/--no-pauses", help="Wait between the calls as long as the program did.")
    ] = True,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="When a call that does not end is given up.")
    ] = 10.0,
) -> None:
    """Make the recorded calls again, with made-up tensors: the same shapes, groups, order, messages and pauses.

    A mismatch raises the recorded error, and a call that hung hangs again, until the timeout.
    The exit status is 0 if every call ends as recorded, 1 if not, and 2 if the recording cannot be read.
    """
    from shim.launch.identity import free_addresses
    from shim.launch.processes import Rules, run_ranks

    recording = recording_in(folder, run)
    size = recording.size if ranks is None else ranks
    if size > recording.size:
        refuse(f"{folder} has {recording.size} ranks, and -n asks for {size}\nGive -n at most {recording.size}.")
    if absent := [rank for rank in recording.missing if rank < size]:
        refuse(
            f"{folder} has no file of rank {', '.join(map(str, absent))}\nGive -n at most {absent[0]}."
            if absent[0]
            else f"{folder} has no file of rank 0"
        )
    with tempfile.TemporaryDirectory() as answers:
        arguments = [str(folder), str(recording.run), str(size), str(timeout), str(int(pauses)), answers]
        command = [sys.executable, "-m", "shim.trace.replaying.rank", *arguments]
        environment = {"SHIM_TRACE": "", "SHIM_STALL_WARNING": "0"}
        run_ranks(command, free_addresses(size), environment, Rules(keep_going=True))
        outcomes = [_outcome(file) for file in sorted(Path(answers).glob("rank*.json"))]
    for line in _lines(recording, sorted(outcomes, key=lambda one: one.rank), size):
        typer.echo(line)
    is_whole = len(outcomes) == size
    if not is_whole:
        typer.echo(f"{size - len(outcomes)} of {size} ranks failed in the replay itself", err=True)
    raise typer.Exit(0 if is_whole and not any(outcome.different for outcome in outcomes) else 1)


def _outcome(file: Path) -> RankOutcome:
    from shim.trace.replaying.rank import RankOutcome

    return RankOutcome.of(json.loads(file.read_text()))


def _lines(recording: Recording, outcomes: list[RankOutcome], size: int) -> Iterator[str]:
    shown: dict[str, list[int]] = {}
    for outcome in outcomes:
        for line, kind, text in outcome.reproduced:
            shown.setdefault(
                f"{kind}, as recorded: {text.replace('  <- this rank', '')}"
                if kind == "MismatchError"
                else f"{kind} in {line}: {text}",
                [],
            ).append(outcome.rank)
    for text, ranks in list(shown.items())[:_MOST]:
        yield f"rank {', '.join(map(str, ranks))}: {text}"
    for outcome in outcomes:
        for line, what in outcome.different:
            yield f"rank {outcome.rank} differs at {line}: {what}"
    left_out = sum(call.rank >= size for call in recording.calls)
    cut = (
        f"; left out: ranks {size} to {recording.size - 1} with {left_out} calls, and messages to and from them"
        if size < recording.size
        else ""
    )
    calls = sum(outcome.calls for outcome in outcomes)
    seconds = max((outcome.seconds for outcome in outcomes), default=0.0)
    recorded = (recording.last - recording.first) / 1e9
    yield f"{calls} calls of {len(outcomes)} rank{'s' * (len(outcomes) != 1)} were made again in {seconds:.2f} s, which took {recorded:.2f} s{cut}"
