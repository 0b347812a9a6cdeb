"""``shim doctor``: what the ranks that run on this host, or on several, are doing."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from shim.cli.several_hosts import SSH
from shim.core.engines.choosing import usual
from shim.core.reports.inquiries import GroupFacts, ProcessFacts, ask_all
from shim.core.reports.remote import UnreachableHost, ask_hosts
from shim.core.reports.waits import Wait, absent_ranks, circles_of_waits, told_circle


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the answers of the processes as JSON.")] = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to wait for the answer of a process.", min=0.1)
    ] = 1.0,
    job: Annotated[
        str,
        typer.Option(
            metavar="PID|TEXT", help="Show only jobs with this process number, or with this text in a command."
        ),
    ] = "",
    hosts: Annotated[
        str,
        typer.Option(
            metavar="HOST,...", help="Ask the processes of these hosts over ssh, in this folder, with this Python."
        ),
    ] = "",
    ssh: Annotated[
        str, typer.Option(metavar="COMMAND", help="The program for --hosts; it is given a host and a command line.")
    ] = SSH,
) -> None:
    """Show what your ranks on this host, or on several, are doing, and which ranks wait for which.

    Each of your processes that is in a group reports what it waits for, since when and at which line, its last calls, and the ranks it has lost.
    This does not disturb the process.
    A stopped process does not answer, and is shown as stopped.
    Processes that wait in a circle are asked twice, and named if nothing has changed.
    The exit status is 1 if there is no such process.
    """
    names = [name.strip() for name in hosts.split(",") if name.strip()]
    ask = partial(ask_hosts, names, shlex.split(ssh)) if names else ask_all
    try:
        _show(ask, timeout, job, as_json, f"on {', '.join(names)}" if names else "on this host")
    except UnreachableHost as error:
        raise typer.BadParameter(str(error)) from None


def _show(ask: Callable[[float], list[ProcessFacts]], timeout: float, job: str, as_json: bool, where: str) -> None:
    processes = _of_job(job, ask(timeout))
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(process) for process in processes], indent=2))
    elif not processes:
        typer.echo(f"No process of yours {where} is in a group{f' of a job {job!r}' if job else ''}.")
    else:
        console = Console(highlight=False, soft_wrap=True)
        circles = circles_of_waits(processes, processes)
        circles = circles_of_waits(processes, ask(timeout)) if circles else []
        for line in _lines(processes, circles):
            console.print(line)
    if not processes:
        raise typer.Exit(1)


def _of_job(job: str, processes: list[ProcessFacts]) -> list[ProcessFacts]:
    """Return those of *processes* whose job has one with this number, or with this text in its command."""
    chosen = [one for members in _jobs(processes).values() for one in members if _is_meant(job, one)]
    jobs = {_job_of(process) for process in chosen}
    return [process for process in processes if process in chosen or (process.groups and _job_of(process) in jobs)]


def _is_meant(job: str, process: ProcessFacts) -> bool:
    return job in process.command or (job.isdecimal() and process.pid == int(job))


def _job_of(process: ProcessFacts) -> int:
    return process.widest.inode if process.groups else 0


def _jobs(processes: list[ProcessFacts]) -> dict[int, list[ProcessFacts]]:
    jobs: dict[int, list[ProcessFacts]] = {}
    for process in processes:
        jobs.setdefault(_job_of(process), []).append(process)
    return jobs


def _lines(processes: list[ProcessFacts], circles: list[list[Wait]]) -> Iterator[str]:
    jobs = _jobs(processes)
    without_groups = jobs.pop(0, [])
    for members in jobs.values():
        yield from _job(sorted(members, key=lambda process: process.widest.rank))
        mine = {process.key for process in members}
        yield from (f"  [bold red]{escape(told_circle(circle))}[/]" for circle in circles if circle[0].process in mine)
    for process in without_groups:
        what = "is in no group any more" if process.answers else "does not answer"
        at = _at(process)
        yield f"[bold]{_who(process)}[/]: {what}{',' if at else ''}{at}  {escape(process.command)}"


def _job(members: list[ProcessFacts]) -> Iterator[str]:
    first = members[0].widest
    yield f"[bold]{escape(members[0].command)}[/]: {len(members)} of {len(first.ranks)} ranks {'there' if members[0].host else 'here'}"
    for process in members:
        yield f"  [bold]rank {process.widest.rank}[/] ({_who(process)}){_at(process)}"
        for group in process.groups:
            yield from _group(group, absent_ranks(group, members))
    for lost in {lost.rank: lost for process in members for lost in process.widest.gone}.values():
        yield f"  [bold red]{escape(lost.how)}[/]"
        if lost.calls:
            yield f"    last calls: {escape(lost.calls)}"


def _group(group: GroupFacts, absent: dict[int, tuple[str, int]]) -> Iterator[str]:
    waits = f"[yellow]{escape(group.waits)}[/]" if group.waits else "waits for nobody"
    if absent:
        waits += "; not arrived: " + ", ".join(f"rank {rank} ({_named(*who)})" for rank, who in sorted(absent.items()))
    yield f"    group {escape(repr(group.name))}, rank {group.rank} of {len(group.ranks)}: {waits}"
    if group.engine != f"{usual()}, as {usual().reason}":
        yield f"      engine {escape(group.engine)}"
    if group.calls:
        yield f"      last calls: {escape(group.calls)}"


def _who(process: ProcessFacts) -> str:
    named = _named(process.host, process.pid)
    return f"{named}, {process.state}" if process.state else named


def _named(host: str, pid: int) -> str:
    return f"pid {pid} on {escape(host)}" if host else f"pid {pid}"


def _at(process: ProcessFacts) -> str:
    if process.place:
        return f" is at {escape(process.place)}"
    return (
        "" if process.state == "stopped" or not process.answers else " is in code that keeps the interpreter to itself"
    )
