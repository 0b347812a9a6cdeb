"""The command and its options."""

from __future__ import annotations

import importlib.util
import io
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from shim.cli.conformance.options import console_of
from shim.cli.port.options import APIS, FORMS, api_of, check_options, ignored_rules, read_baseline, rules_of

if TYPE_CHECKING:
    from shim.port.plan import Plan, Result

_MISSING = "shim port needs libcst, which is not installed: python3 -m pip install 'shim-collectives[port]'"
_TIMEOUT = 600.0  # seconds


def _explain(name: str | None) -> None:
    """Print the page about the rule *name*, and end the command."""
    if name is not None:
        from shim.port.entry_rules import page_of

        typer.echo("\n".join(page_of(each) for each in sorted(rules_of("--explain", [name]))), nl=False)
        raise typer.Exit


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
            "--from", metavar="NAME", help=f"What the code is written for: {', '.join(APIS)}.", show_default=False
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
        Literal["collectives", "statements", "files"] | None,
        typer.Option(
            help="collectives: the collective API alone. statements: also the tensors' own functions, in the functions that call a collective. files: in all functions, but for models. Default: collectives; with --onto native, whose collectives take the framework's own tensors alone, statements.",
            show_default=False,
        ),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the files. Without it, nothing is written.")] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Print the summary alone, unless with --diff; the exit status tells if there is anything to port.",
        ),
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
        typer.Option(metavar="FILE", help=f"Also write the report to FILE; its name ends in {', '.join(FORMS)}."),
    ] = None,
    select: Annotated[list[str] | None, typer.Option(metavar="RULES", help="Report these,rules-* alone.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="RULES", help="Do not report these.")] = None,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Do not report what FILE has, a JSON report.")
    ] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print what is done in each file, by rule.")] = False,
    mark: Annotated[
        bool, typer.Option("--mark", help="Write '# shim: left: ...' before what is left in Python.")
    ] = False,
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
        typer.Option(metavar="RULE", callback=_explain, is_eager=True, help="Print code before and after, and exit."),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(min=0, metavar="T", help="With --verify: values may differ by T, and T of their size.")
    ] = 0.0,
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
    chosen = api_of("--from", source), api_of("--to", target)
    check_options(chosen, write, check, diff, form, report, verify, timeout, tolerance, onto, stats)
    ignored, known = ignored_rules(select or (), ignore or ()), read_baseline(baseline)
    if importlib.util.find_spec("libcst") is None:
        typer.echo(_MISSING, err=True)
        raise typer.Exit(2)
    from shim.port.plan import Plan
    from shim.port.reports.as_json import without_known

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names and lines may have what its encoding has not
    between_frameworks = len({name.partition("_")[0] for name in chosen}) > 1
    scope = scope or ("statements" if onto == "native" and between_frameworks else "collectives")
    plan = Plan(*chosen, onto=onto, scope=scope, ignored=ignored, marks=mark)
    result = without_known(_run(paths, plan, jobs or _processors()), known)
    if write:
        result = _write(result)
    elif verify is None and not (check or stats):
        result = _with_command(result, paths)
    if form != "text":
        typer.echo(_reported(form, result, write), nl=False)
    else:
        _print(
            result, diff if diff is not None else not (write or check or stats), not check or bool(diff), write, stats
        )
    if report is not None:
        report.write_text(_reported(FORMS[report.suffix], result, write), encoding="utf-8", errors="backslashreplace")
    verified = 0
    if verify is not None:
        from shim.cli.port.verifying import verify as verify_port

        verified = verify_port(verify, result, timeout or _TIMEOUT, tolerance)
    raise typer.Exit(max(_status(result, check), verified))


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


def _with_command(result: Result, paths: list[Path]) -> Result:
    """Return *result* with the command that verifies it."""
    import dataclasses

    from shim.port.launch_lines.verifying import command_for
    from shim.port.reports.wording import api_name

    plan, command = result.plan, command_for(result)
    scope = ["--scope", plan.scope] * (plan.scope != "collectives")
    words = [
        "shim",
        "port",
        "--from",
        api_name(plan.source),
        "--to",
        api_name(plan.target),
        *scope,
        "--verify",
        command,
        *map(str, paths),
    ]
    return dataclasses.replace(result, verify=shlex.join(words)) if command else result


def _write(result: Result) -> Result:
    """Write the changed files, and return the result with what could not be written."""
    import dataclasses

    from shim.port.run import write_files

    written = {file.path: file for file in write_files(result)}
    return dataclasses.replace(result, files=[written.get(file.path, file) for file in result.files])


def _print(result: Result, diff: bool, entries: bool, written: bool, stats: bool) -> None:
    from shim.port.reports.terminal import print_diff, print_entries, print_stats, print_summary

    console = console_of()
    if diff:
        print_diff(result, console)
    if stats:
        print_stats(result, console)
    elif entries or result.unported:
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
