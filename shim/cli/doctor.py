"""``shim doctor``: what the ranks that run on this host are doing."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from shim.core.inquiries import GroupFacts, ProcessFacts, ask_all

__all__ = ["doctor"]


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print what the processes told, as JSON.")] = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to wait for a process's answer.", min=0.1)
    ] = 1.0,
) -> None:
    """Show what your ranks on this host are doing, and who waits for whom.

    Every process of yours that is in a group is asked, which does not disturb it: what it waits for, since when and where in its
    program, its last calls, and which ranks it knows to be gone. One that is stopped does not answer, and is shown as stopped.
    The exit status is 1 where there is no such process.
    """
    processes = ask_all(timeout)
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(process) for process in processes], indent=2))
    elif not processes:
        typer.echo("No process of yours on this host is in a group.")
    else:
        console = Console(highlight=False, soft_wrap=True)
        for line in _lines(processes):
            console.print(line)
    if not processes:
        raise typer.Exit(1)


def _lines(processes: list[ProcessFacts]) -> Iterator[str]:
    jobs: dict[int, list[ProcessFacts]] = {}
    for process in processes:
        jobs.setdefault(process.widest.inode if process.groups else 0, []).append(process)
    without_groups = jobs.pop(0, [])
    for members in jobs.values():
        yield from _job(sorted(members, key=lambda process: process.widest.rank))
    for process in without_groups:
        what = "is in no group any more" if process.answers else "does not answer"
        at = _at(process)
        yield f"[bold]{_who(process)}[/]: {what}{',' if at else ''}{at}  {escape(process.command)}"


def _job(members: list[ProcessFacts]) -> Iterator[str]:
    first = members[0].widest
    yield f"[bold]{escape(members[0].command)}[/]: {len(members)} of {len(first.ranks)} ranks here"
    for process in members:
        yield f"  [bold]rank {process.widest.rank}[/] ({_who(process)}){_at(process)}"
        for group in process.groups:
            yield from _group(group)
    for lost in {lost.rank: lost for process in members for lost in process.widest.gone}.values():
        yield f"  [bold red]{escape(lost.how)}[/]"
        if lost.calls:
            yield f"    last calls: {escape(lost.calls)}"


def _group(group: GroupFacts) -> Iterator[str]:
    waits = f"[yellow]{escape(group.waits)}[/]" if group.waits else "waits for nobody"
    yield f"    group {escape(repr(group.name))}, rank {group.rank} of {len(group.ranks)}: {waits}"
    if group.calls:
        yield f"      last calls: {escape(group.calls)}"


def _who(process: ProcessFacts) -> str:
    return f"pid {process.pid}, {process.state}" if process.state else f"pid {process.pid}"


def _at(process: ProcessFacts) -> str:
    if process.place:
        return f" is at {escape(process.place)}"
    return (
        "" if process.state == "stopped" or not process.answers else " is in code that keeps the interpreter to itself"
    )
