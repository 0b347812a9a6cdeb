"""``shim conformance list``."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from shim.cli.conformance.options import Examples, Frameworks, console_of
from shim.cli.conformance.run import plan_from
from shim.conformance.documents import report
from shim.conformance.examples.selection import is_chosen
from shim.conformance.examples.sides import SHIM
from shim.conformance.examples.suite import Source

__all__ = ["list_examples"]


def list_examples(framework: Frameworks = None, example: Examples = None) -> None:
    """Show the cases and the frameworks' examples, with what is on record of them, and run nothing."""
    console = console_of()
    plan = plan_from(framework, example, None, False, console)
    report.print_cases(plan.pages, console)
    for source in plan.sources:
        console.print(Text(f"{source.framework} {source.version}", style="bold"))
        console.print(_table(source, plan.patterns))
    for name in plan.absent:
        console.print(Text(f"{name}: not installed, its examples cannot be read", style="dim"))


def _table(source: Source, patterns: tuple[str, ...]) -> Table:
    table = Table("example", "ranks", "steps", "on record")
    records = source.records.get(SHIM, {})
    for example in source.examples:
        if is_chosen(example.name, patterns):
            record = records.get(example.name)
            verdict = "" if record is None else record.verdict.value
            table.add_row(Text(example.name), str(example.ranks), str(len(example.steps)), Text(verdict))
    return table
