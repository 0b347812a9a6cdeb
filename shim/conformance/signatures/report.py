"""Tell how the frontends' signatures compare with the recorded ones, and those with the installed frameworks'."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib import metadata

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shim.conformance.signatures import FRONTENDS
from shim.conformance.signatures.comparison import ModuleResult, compare_frontend

__all__ = ["print_comparison"]

_DEADLINE = 240.0  # seconds a framework may take to be imported and compared


def print_comparison(console: Console) -> bool:
    """Print counts for every module, every exception with its reason and every difference; tell whether all is equal."""
    results = [result for frontend in FRONTENDS for result in compare_frontend(frontend)]
    table = Table("module")
    for name in ("recorded", "equal", "exceptions", "methods"):
        table.add_column(name, justify="right")
    for result in results:
        style = "" if result.passed else "bold red"
        numbers = (result.recorded, result.equal, len(result.excepted), result.methods)
        table.add_row(Text(result.module, style=style), *map(str, numbers))
    console.print(Text("Signatures, compared with those recorded of the frameworks", style="bold"))
    console.print(table)
    _print_exceptions(results, console)
    _print_differences(results, console)
    installed = [_compare_in_process(file, console) for file in dict.fromkeys(FRONTENDS.values())]
    recorded, equal = sum(result.recorded for result in results), sum(result.equal for result in results)
    excepted = sum(len(result.excepted) for result in results)
    passed = all(result.passed for result in results) and all(installed)
    console.print(
        Text(
            f"{recorded} functions, classes and constants recorded, {equal} present and equal, {excepted} exceptions.",
            style="bold green" if passed else "bold red",
        )
    )
    return passed


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


def _compare_in_process(file: str, console: Console) -> bool:
    """Make the record of an installed framework again and compare; one that is not installed is said to be so."""
    framework, _, version = file.partition("-")
    if importlib.util.find_spec(framework) is None:
        console.print(Text(f"{framework} {version}: not installed, its record was not made again", style="dim"))
        return True
    if _installed_version(framework) != version:
        console.print(Text(f"{framework} {version}: another version is installed", style="dim"))
        return True
    command = [sys.executable, "-m", "shim.conformance.signatures", file]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_DEADLINE)
    except subprocess.TimeoutExpired:
        console.print(Text(f"{framework} {version}: not compared within {_DEADLINE:g} s", style="bold red"))
        return False
    same = ended.returncode == 0 and ended.stdout.endswith("as recorded")
    told = "the installed one has the recorded signatures" if same else f"{ended.stdout}{ended.stderr}"
    console.print(Text(f"{framework} {version}: {told}", style="" if same else "bold red"), soft_wrap=True)
    return same


def _installed_version(framework: str) -> str:
    distribution = {"paddle": "paddlepaddle"}.get(framework, framework)
    return metadata.version(distribution).partition("+")[0]
