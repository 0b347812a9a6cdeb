"""``shim trace show``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shim.cli.trace.recordings import recording_in, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from shim.trace.calls import Recording
    from shim.trace.summary import Summary

_MOST = 8  # failures and unfinished calls that are shown


def show(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A recording, or torch's Flight Recorder dumps.")],
    run: Annotated[
        int | None, typer.Option(metavar="N", help="Which run, if the folder has several. Default: the last.")
    ] = None,
    internal: Annotated[
        bool, typer.Option("--internal", help="Also count the calls that shim makes itself, as to create groups.")
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page for a browser: a lane for each rank, to zoom into."),
    ] = None,
    perfetto: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it for ui.perfetto.dev or chrome://tracing.")
    ] = None,
    flight_recorder: Annotated[
        Path | None,
        typer.Option(
            metavar="PREFIX", help="Write a dump for each rank, PREFIX0 and so on, that torch's fr_trace reads."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Show where a job's time went: per operation its calls, its bytes, its time waiting and moving, and its slowest rank."""
    from shim.trace.summary import summarize

    files = {"--page": page, "--perfetto": perfetto, "--flight-recorder": flight_recorder}
    chosen = [option for option, file in files.items() if file is not None]
    if chosen and (as_json or internal):
        raise typer.BadParameter(
            f"{'--json' if as_json else '--internal'} is for the summary, which {chosen[0]} does not print"
        )
    recording = recording_in(folder, run)
    try:
        if page is not None:
            from shim.trace.page import as_html

            page.write_text(as_html(recording), encoding="utf-8")
            typer.echo(f"{page}: open it in a browser")
        if perfetto is not None:
            from shim.trace.perfetto import write_perfetto

            write_perfetto(recording, perfetto)
            typer.echo(f"{perfetto}: open it in https://ui.perfetto.dev")
        if flight_recorder is not None:
            from shim.trace.flight_recorder import write_dumps

            dumps = write_dumps(recording, flight_recorder)
            read = f"python -m torch.distributed.flight_recorder.fr_trace {flight_recorder.parent} -p {flight_recorder.name}"
            typer.echo(f"{len(dumps)} files; `{read}` reads them")
    except OSError as error:
        refuse(f"{error.filename} cannot be written: {error.strerror}")
    if chosen:
        return
    summary = summarize(recording, internal)
    if as_json:
        typer.echo(_json(recording, summary))
    else:
        _print(recording, summary)


def _json(recording: Recording, summary: Summary) -> str:
    import json

    told = {
        "path": recording.path,
        "size": recording.size,
        "missing_ranks": recording.missing,
        "cut_ranks": [rank.rank for rank in recording.ranks.values() if rank.is_cut],
        "seconds": summary.seconds,
        "operations": [dataclasses.asdict(one) for one in summary.operations],
        "ranks": [dataclasses.asdict(one) for one in summary.ranks],
        "unfinished": [
            {"rank": call.rank, "call": call.line(), "absent": absent} for call, absent in summary.unfinished
        ],
        "failures": [
            {"rank": call.rank, "call": call.line(), "error": {"class": call.failure.kind, "text": call.failure.text}}
            for call in summary.failures
            if call.failure
        ],
    }
    return json.dumps(told, indent=2)


def _print(recording: Recording, summary: Summary) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    runs = f"; run {recording.run} of {recording.runs}" if recording.runs > 1 else ""
    count = sum(rank.calls for rank in summary.ranks)
    console.print(
        f"{escape(recording.path)}: {count} calls of {len(recording.ranks)} ranks in {summary.seconds:.3f} s{runs}"
    )
    if recording.missing:
        console.print(f"[yellow]Not recorded: rank {', '.join(map(str, recording.missing))} of {recording.size}.[/]")
    cut = [rank.path for rank in recording.ranks.values() if rank.is_cut]
    if cut:
        console.print(f"[yellow]The end is missing of {escape(', '.join(cut))}: calls and times are not complete.[/]")
    console.print(_operations(summary))
    console.print(_ranks(summary))
    for line in _lines(summary):
        console.print(line)


def _operations(summary: Summary) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("operation", no_wrap=True)
    table.add_column("group")
    for name in ("calls", "MB", "wait ms", "move ms"):
        table.add_column(name, justify="right")
    table.add_column("slowest rank", no_wrap=True)
    for one in summary.operations:
        slowest = f"{one.slowest[0]} ({one.slowest[1]:.0%} of wait)" if one.slowest else ""
        times = f"{one.waiting / 1e6:.2f}", f"{one.moving / 1e6:.2f}"
        table.add_row(one.collective, one.group, str(one.calls), f"{one.bytes / 1e6:.3f}", *times, slowest)
    return table


def _ranks(summary: Summary) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("rank", "calls", "wait ms", "move ms", "awaited ms"):
        table.add_column(name, justify="right")
    for one in summary.ranks:
        times = [f"{time / 1e6:.2f}" for time in (one.waiting, one.moving, one.awaited)]
        table.add_row(str(one.rank), str(one.calls), *times)
    return table


def _lines(summary: Summary) -> Iterator[str]:
    from rich.markup import escape

    slowest = summary.slowest
    waiting = sum(one.waiting for one in summary.ranks)
    if slowest is not None and slowest.awaited > 0:
        yield f"The others waited for rank {slowest.rank} most: {slowest.awaited / 1e6:.2f} ms, {slowest.awaited / waiting:.0%} of all waiting."
    for call, absent in summary.unfinished[:_MOST]:
        missing = f"; not there: rank {', '.join(map(str, absent))}" if absent else ""
        yield f"[red]Rank {call.rank} has not ended {escape(call.line())}{missing}[/]"
    for call in summary.failures[:_MOST]:
        assert call.failure is not None
        yield f"[red]Rank {call.rank}: {call.failure.kind} in {escape(call.line())}[/]"
    more = max(0, len(summary.unfinished) - _MOST) + max(0, len(summary.failures) - _MOST)
    if more:
        yield f"{more} more; --json lists them all"
