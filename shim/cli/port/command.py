"""The command and its options."""

from __future__ import annotations

import difflib
import importlib.util
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from shim.cli.conformance.options import check_writable, console_of

if TYPE_CHECKING:
    from shim.port.plan import Plan, Result

_APIS = {
    "torch": "torch",
    "paddle-2": "paddle_2",
    "paddle-3": "paddle_3",
    "mindspore": "mindspore",
}  # as a plan has them
_FORMS = {".md": "markdown", ".json": "json", ".sarif": "sarif"}
_MISSING = "shim port needs libcst, which is not installed: python3 -m pip install 'shim-collectives[port]'"
_TIMEOUT = 600.0  # seconds
_PADDLE = "paddle-3 (alltoall and alltoall_single take the output first) or paddle-2 (the input first)"


def _explain(name: str | None) -> None:
    """Print the page about the rule *name*, and end the command."""
    if name is not None:
        from shim.port.reports.rule_page import page_of

        typer.echo(page_of(_rule("--explain", name)), nl=False)
        raise typer.Exit


def _rule(option: str, name: str) -> str:
    """Return *name*. Raises BadParameter where no rule is called so."""
    from shim.port.entry_rules import RULES

    if name not in RULES:
        close = difflib.get_close_matches(name, RULES, n=1)
        hint = f"; is it {close[0]}?" if close else "; a report names the rule of each entry in brackets"
        raise typer.BadParameter(f"there is no rule {name!r}{hint}", param_hint=option)
    return name


def port(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="Files and folders. Of a folder: Python files, notebooks, and the launch lines in scripts, pages, Dockerfiles, Makefiles and YAML.",
            show_default=False,
        ),
    ],
    source: Annotated[
        str,
        typer.Option(
            "--from", metavar="NAME", help=f"What the code is written for: {', '.join(_APIS)}.", show_default=False
        ),
    ],
    target: Annotated[
        str,
        typer.Option("--to", metavar="NAME", help="What it is to be written for: one of these.", show_default=False),
    ],
    onto: Annotated[
        Literal["shim", "native"],
        typer.Option(help="shim: the result imports shim's frontend. native: it imports the framework itself."),
    ] = "shim",
    scope: Annotated[
        Literal["collectives", "statements", "files"],
        typer.Option(
            help="collectives: the collective API alone. statements: also the tensors' own functions, in the functions that call a collective. files: in all functions, but for models."
        ),
    ] = "collectives",
    write: Annotated[bool, typer.Option("--write", help="Write the files. Without it, nothing is written.")] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Print the summary alone; the exit status tells if there is anything to port."),
    ] = False,
    diff: Annotated[
        bool | None,
        typer.Option(
            "--diff/--no-diff", help="Print the changes. Default: unless --write or --check.", show_default=False
        ),
    ] = None,
    form: Annotated[
        Literal["text", "markdown", "json", "sarif"],
        typer.Option("--format", help="Print the report in this form; if it is not text, nothing else is printed."),
    ] = "text",
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"Also write the report to FILE; its name ends in {', '.join(_FORMS)}."),
    ] = None,
    verify: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run COMMAND, such as 'shim run -n 2 train.py', before and after the port, in copies of the working folder, and compare what the ranks call.",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="With --verify: how long each of the two runs may take. Default: 600.",
            show_default=False,
        ),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Print what entries of RULE mean, with an example, and exit.",
            callback=_explain,
            is_eager=True,
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="The number of processes. Default: all processors.", show_default=False),
    ] = None,
) -> None:
    """Port distributed code from one framework's collective API to another's.

    You see the changes as a diff, then each place that is left to you or has changed its meaning: where, why, what to do.
    What is no use of the API stays byte for byte as it is.
    With --write the files are changed, each as a whole.

    shim port --from torch --to mindspore train.py

    shim port --from paddle-2 --to paddle-3 --write src

    shim port --from torch --to paddle-3 --check --report port.sarif .

    shim port --from torch --to mindspore --verify "shim run -n 2 train.py" .

    The exit status is 0 if nothing is left to you; 1 if something is, or, with --check, if a file would change, or, with --verify, if a call differs; 2 if the command is wrong, a file could not be ported or written, or COMMAND fails.
    """
    chosen = _api("--from", source), _api("--to", target)
    _check_options(chosen, write, check, diff, form, report, verify, timeout, onto)
    if importlib.util.find_spec("libcst") is None:
        typer.echo(_MISSING, err=True)
        raise typer.Exit(2)
    from shim.port.plan import Plan

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names and lines may have what its encoding has not
    result = _run(paths, Plan(*chosen, onto=onto, scope=scope), jobs or _processors())
    if write:
        result = _write(result)
    if form != "text":
        typer.echo(_reported(form, result, write), nl=False)
    else:
        _print(result, diff if diff is not None else not (write or check), not check, write)
    if report is not None:
        report.write_text(_reported(_FORMS[report.suffix], result, write), encoding="utf-8", errors="backslashreplace")
    verified = 0
    if verify is not None:
        from shim.cli.port.verifying import verify as verify_port

        verified = verify_port(verify, result, timeout or _TIMEOUT)
    raise typer.Exit(max(_status(result, check), verified))


def _api(option: str, name: str) -> str:
    """Return what a plan calls the API *name*. Raises BadParameter for a name that is none."""
    given = name.lower().replace("_", "-")
    if given in _APIS:
        return _APIS[given]
    if given == "paddle":
        raise typer.BadParameter(f"choose the version: {_PADDLE}", param_hint=option)
    close = difflib.get_close_matches(given, _APIS, n=1)
    hint = f"; is it {close[0]}?" if close else f"; it is one of {', '.join(_APIS)}"
    raise typer.BadParameter(f"there is no API {name!r}{hint}", param_hint=option)


def _check_options(
    chosen: tuple[str, str],
    write: bool,
    check: bool,
    diff: bool | None,
    form: str,
    report: Path | None,
    verify: str | None,
    timeout: float | None,
    onto: str,
) -> None:
    """Raise BadParameter for options that do not go together."""
    if chosen[0] == chosen[1]:
        raise typer.BadParameter(f"--from and --to are both {chosen[0].replace('_', '-')}")
    if verify is not None and onto == "native":
        raise typer.BadParameter("--verify runs the port on shim, and --onto native is for the framework itself")
    if verify is not None and form != "text":
        raise typer.BadParameter(
            f"--verify and --format {form} exclude each other: --report FILE writes a report as well"
        )
    if timeout is not None and verify is None:
        raise typer.BadParameter("--timeout is for --verify, which is not given")
    if write and check:
        raise typer.BadParameter("--write and --check exclude each other: --check writes nothing")
    if diff and form != "text":
        raise typer.BadParameter(
            f"--diff and --format {form} exclude each other: --report FILE writes a report as well"
        )
    if report is not None and report.suffix not in _FORMS:
        raise typer.BadParameter(f"{report} must end in {', '.join(_FORMS)}", param_hint="--report")
    check_writable("--report", report)


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def _run(paths: list[Path], plan: Plan, jobs: int) -> Result:
    from shim.port.run import port_paths

    console = Console(stderr=True)
    bar = Progress(
        TextColumn("porting"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), console=console, transient=True,
        disable=not console.is_terminal,
    )  # fmt: skip
    task = bar.add_task("", total=None)
    try:
        with bar:
            return port_paths(
                paths, plan, jobs=jobs, progress=lambda done, total: bar.update(task, completed=done, total=total)
            )
    except FileNotFoundError as error:
        raise typer.BadParameter(f"there is no file or folder {str(error.filename)!r}", param_hint="PATH") from None


def _write(result: Result) -> Result:
    """Write the changed files, and return the result with what could not be written."""
    import dataclasses

    from shim.port.run import write_files

    written = {file.path: file for file in write_files(result)}
    return dataclasses.replace(result, files=[written.get(file.path, file) for file in result.files])


def _print(result: Result, diff: bool, entries: bool, written: bool) -> None:
    from shim.port.reports.terminal import print_diff, print_entries, print_summary

    console = console_of()
    if diff:
        print_diff(result, console)
    if entries or result.unported:
        print_entries(result, console)
    print_summary(result, console, written)


def _reported(form: str, result: Result, written: bool) -> str:
    from shim.port.reports.as_json import as_json
    from shim.port.reports.markdown import as_markdown
    from shim.port.reports.sarif import as_sarif

    return {"markdown": as_markdown, "json": as_json, "sarif": as_sarif}[form](result, written)


def _status(result: Result, check: bool) -> int:
    if result.unported:
        return 2
    return 1 if result.count("left") or (check and result.changed) else 0
