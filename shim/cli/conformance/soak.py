"""``shim conformance soak``."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated

import typer

from shim.cli.conformance.options import console_of

if TYPE_CHECKING:
    from shim.conformance.soak.soak import Summary

_MB = 1 << 20


def soak(
    operations: Annotated[int, typer.Option("--operations", min=1, metavar="N", help="The number of calls.")] = 3000,
    ranks: Annotated[int, typer.Option("--ranks", min=1, max=64, metavar="N", help="The number of ranks.")] = 3,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Seed of the random calls. Default: a new one each time.")
    ] = None,
    largest: Annotated[
        int, typer.Option("--largest", min=1, max=32, metavar="MB", help="The largest part of a rank.")
    ] = 32,
) -> None:
    """Make random calls in changing groups, and compare every tensor on every rank with the oracle, bit by bit.

    The calls cover all operations, dtypes, layouts and sizes, blocking and asynchronous, with wrong calls among them.
    Each difference is shown with the seed and the number of the call, so you can repeat it.
    The exit status is 0 if there is no difference, and 1 otherwise.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from shim.conformance.soak import soak as program
    from shim.conformance.soak.draw import KINDS, kinds

    console = console_of()
    plan = program.Plan(operations, ranks, secrets.randbelow(1 << 31) if seed is None else seed, most=largest * _MB)
    absent = [kind.name for kind in KINDS if kind not in kinds()]
    console.print(f"{operations:,} operations on {ranks} ranks, seed {plan.seed}")
    if absent:
        console.print(f"without {', '.join(absent)}, as ml_dtypes is not installed")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("soaking", total=operations)
        summary, told = program.Summary(), 0
        try:
            for summary in program.run(plan):
                progress.update(task, completed=summary.operations)
                for difference in summary.differences[told:]:
                    console.print(difference)
                told = len(summary.differences)
        finally:  # after Ctrl-C too: what has been soaked has been soaked
            for line in _lines(summary):
                console.print(line)
    if not summary.passed:
        raise typer.Exit(1)


def _lines(summary: Summary) -> list[str]:
    from shim.conformance.soak.soak import grown

    lines = []
    if summary.memory:
        memory, descriptors, mappings = (
            grown(held) for held in (summary.memory, summary.descriptors, summary.mappings)
        )
        lines += [
            f"{summary.operations:,} operations, {summary.calls:,} calls of ranks and {summary.mistakes:,} wrong ones in "
            f"{summary.groups:,} groups; {summary.bytes / 1e9:.1f} GB compared in {summary.seconds:.0f} s",
            f"most that a rank held, early and late: memory {memory[0] / _MB:.0f} and {memory[1] / _MB:.0f} MB, "
            f"descriptors {descriptors[0]} and {descriptors[1]}, mappings {mappings[0]} and {mappings[1]}",
        ]
    return [*lines, f"{len(summary.differences)} differences" if summary.differences else "0 differences"]
