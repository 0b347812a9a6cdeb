"""``shim conformance run``."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from shim.cli.conformance.options import (
    Engine,
    Examples,
    Files,
    Frameworks,
    Hosts,
    Tensors,
    check_writable,
    console_of,
    use_engine,
)
from shim.cli.conformance.plans import plan_from
from shim.conformance import report
from shim.conformance.documents import pages
from shim.conformance.documents.case import Case
from shim.conformance.documents.pages import CASE_SIDES
from shim.conformance.examples.suite import REFERENCE, Part, SourceRun, run_source
from shim.conformance.matrix.as_json import as_json
from shim.conformance.matrix.cells import Matrix
from shim.conformance.matrix.files import as_html, as_junit, as_markdown
from shim.conformance.matrix.terminal import print_matrix
from shim.conformance.plan import Plan, matrix_of
from shim.conformance.progress import ProgressTable, progress_bar
from shim.conformance.runner import Run
from shim.frontends.mindspore._groups.numpy_versions import numpy_advice


def _file(option: str, what: str) -> Any:
    return typer.Option(option, metavar="FILE", help=f"Also write {what} to FILE.")


def run(
    paths: Files = None,
    framework: Frameworks = None,
    example: Examples = None,
    tensors: Tensors = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Also run the examples on the frameworks themselves, and show both.")
    ] = False,
    engine: Engine = None,
    hosts: Hosts = None,
    every: Annotated[bool, typer.Option("--every", help="Print a line for every example, even if it passes.")] = False,
    json_file: Annotated[Path | None, _file("--json", "the full result")] = None,
    junit_file: Annotated[Path | None, _file("--junit", "JUnit XML for build servers")] = None,
    markdown_file: Annotated[Path | None, _file("--markdown", "a summary and the table as Markdown")] = None,
    html_file: Annotated[Path | None, _file("--html", "an HTML page with every example")] = None,
) -> None:
    """Run the documented examples of the installed frameworks, or those in FILES.

    The examples in the frameworks' docstrings run unchanged, with the tensors that they create; cases of five documents run with every kind of tensor.
    With --tensors all, the examples in docstrings use every kind, too.
    The exit status is 1 if an example fails, if a verdict differs from the recorded one, or if an example that is on record or that you asked for did not run; it is 0 otherwise.
    """
    files = {"--json": json_file, "--junit": junit_file, "--markdown": markdown_file, "--html": html_file}
    for option, file in files.items():
        check_writable(option, file)
        twin = next((other for other in files if other != option and file is not None and files[other] == file), None)
        if twin is not None:
            raise typer.BadParameter(f"{option} and {twin}: two results for one file, {file}")
    use_engine(engine, hosts)
    console = console_of()
    begin = time.perf_counter()
    plan = plan_from(paths, framework, example, tensors, reference, console)
    cases = _run_cases(plan, console)
    runs = _run_examples(plan, console)
    matrix = matrix_of(plan, cases, runs, time.perf_counter() - begin)
    if cases is not None:
        report.print_report(cases, plan.pages, console)
        console.print()
    print_matrix(matrix, console, every)
    if _has_mindspore(plan) and (advice := numpy_advice()):
        console.print(Text(f"\n{advice}", style="bold red"))
    _write(matrix, files)
    if not matrix.passed:
        raise typer.Exit(1)


def _has_mindspore(plan: Plan) -> bool:
    return "mindspore" in plan.selection.present or any(each.framework == "mindspore" for each in plan.sources)


def _run_cases(plan: Plan, console: Console) -> Run[Case] | None:
    if not plan.pages:
        return None
    calls = pages.planned(plan.pages, plan.selection)
    with progress_bar(calls, console, "cases", "", lambda case: case.document) as on_result:
        return pages.run_documents(plan.pages, plan.selection, on_result)


def _run_examples(plan: Plan, console: Console) -> list[SourceRun]:
    runs: list[SourceRun] = []
    with ProgressTable(plan.totals, console) as progress:
        for source in plan.sources:
            ours: SourceRun | None = None
            for part in plan.parts_of(source):
                count = partial(progress.count, part)
                beside = ours if part.side == REFERENCE else None
                run = run_source(source, part.side, plan.patterns, progress.begin, count, beside, tensors=part.tensors)
                runs.append(run)
                ours = ours or run
        for cases in plan.cases:
            count = partial(progress.count, Part(cases.framework, REFERENCE, ""))
            runs.append(run_source(cases, REFERENCE, plan.patterns, progress.begin, count, sides=CASE_SIDES))
    return runs


def _write(matrix: Matrix, files: dict[str, Path | None]) -> None:
    forms = {
        "--json": lambda: json.dumps(as_json(matrix), indent=1) + "\n",
        "--junit": lambda: as_junit(matrix),
        "--markdown": lambda: as_markdown(matrix),
        "--html": lambda: as_html(matrix),
    }
    for option, file in files.items():
        if file is not None:
            file.write_text(forms[option](), encoding="utf-8")
