"""``shim conformance list``."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shim.cli.conformance.options import Examples, Files, Frameworks, Tensors, console_of
from shim.cli.conformance.plans import plan_from
from shim.conformance import report
from shim.conformance.examples.example import Example, is_chosen
from shim.conformance.examples.judging import refused_by_rule
from shim.conformance.examples.suite import DOCSTRING, SHIM, Source, too_many_ranks
from shim.conformance.plan import Plan
from shim.conformance.progress import fits


def list_examples(
    paths: Files = None, framework: Frameworks = None, example: Examples = None, tensors: Tensors = None
) -> None:
    """List the examples of the frameworks and the cases, or those in FILES, that would run. Nothing runs.

    Each example is shown with its number of ranks and its recorded verdict, or its line in FILES.
    With --tensors, you also see the kinds of tensor it would run with.
    """
    console = console_of()
    plan = plan_from(paths, framework, example, tensors, False, console)
    report.print_cases(plan.pages, console, plan.tensors)
    for source in plan.sources:
        _print_source(source, plan, console)
    for name in plan.selection.missing:
        console.print(Text(f"{name}: asked for and not installed", style="dim"))
    for name in plan.absent:
        what = "run" if paths else "read"
        console.print(Text(f"{name}: not installed, its examples cannot be {what}", style="dim"))


def _print_source(source: Source, plan: Plan, console: Console) -> None:
    """Print a table of what is chosen of *source*, or two lines for each example where that has no room."""
    examples = [example for example in source.examples if is_chosen(example.name, plan.patterns)]
    if not examples:
        return
    where = "docstrings" if source.kind == DOCSTRING else "files"
    number = f"{len(examples)} example{'s' * (len(examples) != 1)}"
    console.print(Text(f"{source.framework} {source.version}: {number} in {where}", style="bold"))
    rows = [_row(source, example, plan) for example in examples]
    table = Table("example", *rows[0])
    for example, row in zip(examples, rows, strict=True):
        table.add_row(Text(example.name), *map(Text, row.values()))
    if fits(table, console):
        console.print(table)
        return
    for example, row in zip(examples, rows, strict=True):
        told = "; ".join(f"{head}: {text}" for head, text in row.items() if text)
        console.print(Text(f"{example.name}\n  {told}"), soft_wrap=True)


def _row(source: Source, example: Example, plan: Plan) -> dict[str, str]:
    """Return what is told of *example* besides its name, under the heads of the table."""
    row = {
        "ranks": f"{example.ranks}, not started" if too_many_ranks(example) else str(example.ranks),
        "steps": str(len(example.steps)),
    }
    if source.kind == DOCSTRING:
        record = source.records.get(SHIM, {}).get(example.name)
        row["on record"] = "" if record is None else record.verdict.value
    else:
        row["kind"] = "case" if example.is_case else "example"
        row["place"] = example.place.removeprefix(f"{example.function}, ")
    if plan.tensors is not None:
        row["tensors"] = ", ".join(_kinds(source, example, plan)) or "none"
    return row


def _kinds(source: Source, example: Example, plan: Plan) -> Iterator[str]:
    """Give the kinds of tensor that *example* is run with: where it is on record or ruled not to go with one, it is not."""
    for part in plan.parts_of(source):
        own = part.tensors == example.framework
        if own or not (refused_by_rule(example) or source.refusal(example, part.tensors)):
            yield part.tensors
