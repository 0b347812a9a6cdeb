"""Tell how the frontends' signatures compare with the recorded ones and those with the installed frameworks', and what changed between two records."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from shim.conformance.signatures.comparison import ModuleResult, compare_frontend
from shim.record import FRONTENDS, Signatures, read, recorded_versions
from shim.record.changes import Change, changes_between
from shim.record.releases import followed_by, release_named, version_of

_DEADLINE = 240.0  # seconds a framework may take to be imported and compared


def print_comparison(console: Console) -> bool:
    """Print counts for every module, every exception with its reason and every difference; tell whether all is equal.

    Records of frameworks that are not installed in that version cannot be made again: they are counted apart.
    """
    results = [result for frontend in FRONTENDS for result in compare_frontend(frontend)]
    table = Table(Column("module", overflow="fold"))
    for name in ("recorded", "equal", "members", "equal", "exceptions"):
        table.add_column(name, justify="right")
    for result in results:
        style = "" if result.passed else "bold red"
        numbers = (result.recorded, result.equal, result.members, result.equal_members, len(result.excepted))
        table.add_row(Text(result.module, style=style), *map(str, numbers))
    console.print(Text("Signatures, compared with those recorded of the frameworks", style="bold"))
    console.print(table)
    _print_exceptions(results, console)
    _print_differences(results, console)
    followed = [followed_by(frontend).record for frontend in FRONTENDS]
    made = {file: _compare_in_process(file, console) for file in followed}
    passed = all(result.passed for result in results) and False not in made.values()
    partial = None in made.values()
    style = "bold red" if not passed else "bold yellow" if partial else "bold green"
    console.print(Text(_summary(results, made), style=style), soft_wrap=True)
    return passed


def _summary(results: list[ModuleResult], made: dict[str, bool | None]) -> str:
    recorded, equal = sum(result.recorded for result in results), sum(result.equal for result in results)
    members, equal_members = sum(result.members for result in results), sum(result.equal_members for result in results)
    excepted = sum(len(result.excepted) for result in results)
    not_made = [file.replace("-", " ") for file, same in made.items() if same is None]
    return (
        f"{recorded} functions, classes and constants recorded, {equal} present and equal; {members} members of classes, "
        f"{equal_members} present and equal; {excepted} exceptions.\n"
        f"{len(made) - len(not_made)} of {len(made)} records made again from what is installed, "
        f"{sum(map(bool, made.values()))} of them equal"
        + (f"; not made again: {', '.join(not_made)}." if not_made else ".")
    )


def _print_exceptions(results: list[ModuleResult], console: Console) -> None:
    for result in results:
        for name, reason in result.excepted.items():
            console.print(Text(f"exception: {result.module}.{name}: {reason}"), soft_wrap=True)


def _print_differences(results: list[ModuleResult], console: Console) -> None:
    for result in results:
        for name in result.absent:
            console.print(Text(f"absent: {result.module}.{name}", style="bold red"), soft_wrap=True)
        for line in result.different:
            console.print(Text(f"different: {result.module}.{line}", style="bold red"), soft_wrap=True)


def _compare_in_process(file: str, console: Console) -> bool | None:
    """Make the record of an installed framework again and tell whether it is equal; None where that version is not there."""
    framework, _, version = file.partition("-")
    if importlib.util.find_spec(framework) is None:
        console.print(Text(f"{framework} {version}: not installed, its record was not made again", style="dim"))
        return None
    installed = version_of(framework)
    if installed != version:
        told = f"{framework} {version}: {installed} is installed, the record was not made again"
        console.print(Text(told, style="dim"))
        return None
    command = [sys.executable, "-m", "shim.conformance.signatures.comparison", file]
    # torch as it is by itself, without the backends of installed packages, ours among them.
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_DEADLINE, env=environment)
    except subprocess.TimeoutExpired:
        console.print(Text(f"{framework} {version}: not compared within {_DEADLINE:g} s", style="bold red"))
        return False
    same = ended.returncode == 0 and ended.stdout.endswith("as recorded")
    told = "the installed one has the recorded signatures" if same else f"{ended.stdout}{ended.stderr}"
    console.print(Text(f"{framework} {version}: {told}", style="" if same else "bold red"), soft_wrap=True)
    return same


_MEANING = {
    "silent": ("[red]silent[/red]", "calls that worked go on working and mean something else"),
    "loud": ("[yellow]loud[/yellow]", "calls that worked raise"),
    "compatible": ("[green]compatible[/green]", "calls that worked work as before"),
}


def record_named(text: str) -> Signatures:
    """Return the record called *text*, such as ``paddle-2.6``. Raises ValueError with the names there are."""
    named = release_named(text.replace(" ", "-", 1))
    if named is None:
        raise ValueError(f"there is no record {text!r}; there are {', '.join(recorded_versions())}")
    return read(named)


def print_changes(console: Console, old: Signatures, new: Signatures) -> Sequence[Change]:
    """Print what changed from *old* to *new* by what it breaks, with counts, and return it."""
    found = changes_between(old, new)
    console.print(f"{old.framework} {old.version} to {new.framework} {new.version}")
    for breaks, (label, meaning) in _MEANING.items():
        rows = [change for change in found if change.breaks == breaks]
        console.print(f"\n{label}: {len(rows)} changes; {meaning}")
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 2))
        for change in rows:
            table.add_row(escape(change.name), escape(change.what))
        if rows:
            console.print(table)
    return found
