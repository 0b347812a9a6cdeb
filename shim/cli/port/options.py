"""What the options of the command mean, and which of them go together."""

from __future__ import annotations

import difflib
import fnmatch
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shim.cli.conformance.options import check_writable

if TYPE_CHECKING:
    from shim.port.reports.as_json import Known

APIS = {
    "torch": "torch",
    "paddle-2": "paddle_2",
    "paddle-3": "paddle_3",
    "mindspore": "mindspore",
}  # as a plan has them
FORMS = {".md": "markdown", ".json": "json", ".sarif": "sarif"}
_PADDLE = "paddle-3 (alltoall and alltoall_single take the output first) or paddle-2 (the input first)"


def api_of(option: str, name: str) -> str:
    """Return what a plan calls the API *name*. Raises BadParameter for a name that is none."""
    given = name.lower().replace("_", "-")
    if given in APIS:
        return APIS[given]
    if given == "paddle":
        raise typer.BadParameter(f"choose the version: {_PADDLE}", param_hint=option)
    close = difflib.get_close_matches(given, APIS, n=1)
    hint = f"; is it {close[0]}?" if close else f"; it is one of {', '.join(APIS)}"
    raise typer.BadParameter(f"there is no API {name!r}{hint}", param_hint=option)


def rules_of(option: str, names: Sequence[str]) -> set[str]:
    """Return the rules that *names* mean, which may have commas and wildcards. Raises BadParameter where one means none."""
    from shim.port.entry_rules import RULES

    rules: set[str] = set()
    for name in (each.strip() for text in names for each in text.split(",")):
        found = fnmatch.filter(RULES, name)
        if not found:
            close = difflib.get_close_matches(name, RULES, n=1)
            hint = f"; is it {close[0]}?" if close else "; a report names the rule of each entry in brackets"
            raise typer.BadParameter(f"there is no rule {name!r}{hint}", param_hint=option)
        rules.update(found)
    return rules


def ignored_rules(select: Sequence[str], ignore: Sequence[str]) -> frozenset[str]:
    """Return the rules that are not reported: all but those of *select*, if there are any, and those of *ignore*."""
    from shim.port.entry_rules import RULES

    selected = rules_of("--select", select) if select else {*RULES}
    return frozenset({*RULES} - selected | rules_of("--ignore", ignore))


def read_baseline(path: Path | None) -> Counter[Known]:
    """Return the entries of the report *path*, if there is one. Raises BadParameter where it cannot be read."""
    from shim.port.reports.as_json import known_entries

    try:
        return Counter() if path is None else known_entries(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{path} cannot be read: {error}", param_hint="--baseline") from None


def check_options(
    chosen: tuple[str, str],
    write: bool,
    check: bool,
    diff: bool | None,
    form: str,
    report: Path | None,
    verify: str | None,
    timeout: float | None,
    tolerance: float,
    onto: str,
    stats: bool,
) -> None:
    """Raise BadParameter for options that do not go together."""
    if chosen[0] == chosen[1]:
        raise typer.BadParameter(f"--from and --to are both {chosen[0].replace('_', '-')}")
    if verify is not None and onto == "native":
        raise typer.BadParameter("--verify runs the port on shim, and --onto native is for the framework itself")
    for option, value in (("--timeout", timeout), ("--tolerance", tolerance)):
        if value and verify is None:
            raise typer.BadParameter(f"{option} is for --verify, which is not given")
    if write and check:
        raise typer.BadParameter("pass --write or --check, not both: --check writes nothing")
    for option, given in (("--verify", verify), ("--diff", diff), ("--stats", stats)):
        if given and form != "text":
            raise typer.BadParameter(f"pass {option} or --format {form}, not both: --report FILE writes a report")
    if report is not None and report.suffix not in FORMS:
        raise typer.BadParameter(f"{report} must end in {', '.join(FORMS)}", param_hint="--report")
    check_writable("--report", report)
