"""``shim conformance run``."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from shim.cli.conformance.options import Examples, Files, Frameworks, Tensors, check_writable, console_of
from shim.cli.conformance.plans import plan_from
from shim.conformance.documents import report, runner
from shim.conformance.documents.reference import CASE_SIDES
from shim.conformance.examples.progress import ProgressTable
from shim.conformance.examples.sides import REFERENCE, Part
from shim.conformance.examples.suite import SourceRun, run_source
from shim.conformance.matrix.as_json import as_json
from shim.conformance.matrix.cells import Matrix
from shim.conformance.matrix.html import as_html
from shim.conformance.matrix.junit import as_junit
from shim.conformance.matrix.markdown import as_markdown
from shim.conformance.matrix.terminal import print_matrix
from shim.conformance.plan import Plan, matrix_of

__all__ = ["run"]


def _file(option: str, what: str) -> Any:
    return typer.Option(option, metavar="FILE", help=f"Also write {what} to FILE.")


def run(
    paths: Files = None,
    framework: Frameworks = None,
    example: Examples = None,
    tensors: Tensors = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Run the examples on the frameworks themselves too, and show both.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--every", help="Print a line for every example, also for those that pass.")
    ] = False,
    json_file: Annotated[Path | None, _file("--json", "the full result")] = None,
    junit_file: Annotated[Path | None, _file("--junit", "JUnit's XML, which build servers read,")] = None,
    markdown_file: Annotated[Path | None, _file("--markdown", "a summary and the table as Markdown")] = None,
    html_file: Annotated[Path | None, _file("--html", "a page to look into every example")] = None,
) -> None:
    """Run the documented examples of the frameworks, as they are installed here, or those of FILES, on this machine.

    These are the examples in the frameworks' docstrings, as they are written and with the tensors that they make, and cases of five
    documents with every kind of tensor. --tensors all has the frontends get every kind from the docstrings' examples too. The exit status is 1 where one fails, where a verdict is not the one on record, and where one that is
    on record or was asked for was not run; 0 otherwise.
    """
    files = {"--json": json_file, "--junit": junit_file, "--markdown": markdown_file, "--html": html_file}
    for option, file in files.items():
        check_writable(option, file)
        twin = next((other for other in files if other != option and file is not None and files[other] == file), None)
        if twin is not None:
            raise typer.BadParameter(f"{option} and {twin}: two results for one file, {file}")
    console = console_of()
    begin = time.perf_counter()
    plan = plan_from(paths, framework, example, tensors, reference, console)
    cases = _run_cases(plan, console)
    runs = _run_examples(plan, console)
    matrix = matrix_of(plan, cases, runs, time.perf_counter() - begin)
    if cases is not None:
        report.print_report(cases, console)
        console.print()
    print_matrix(matrix, console, every)
    _write(matrix, files)
    if not matrix.passed:
        raise typer.Exit(1)


def _run_cases(plan: Plan, console: Console) -> runner.Run | None:
    if not plan.pages:
        return None
    with report.progress_of(plan.pages, plan.selection, console) as on_result:
        return runner.run_documents(plan.pages, plan.selection, on_result)


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
