"""``shim trace diff``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shim.cli.trace.recordings import recording_in, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shim.trace.calls import Call
    from shim.trace.differences import Comparison, Difference


def diff(
    left: Annotated[Path, typer.Argument(metavar="A", help="A recording.")],
    right: Annotated[Path, typer.Argument(metavar="B", help="Another one, perhaps of another framework.")],
    digests: Annotated[
        bool, typer.Option("--digests/--no-digests", help="Compare the values too, where both recordings have digests.")
    ] = True,
) -> None:
    """Compare two recordings, and show the first difference on each rank.

    Compared are, in the order of each rank's program: the collective, the group's ranks, root or peer, reduce op, dtype, elements per part, how it ended, and digests.
    The exit status is 0 if all calls are equal, 1 if not, and 2 if a recording cannot be read.
    """
    from shim.trace.differences import compare

    outcome = compare(recording_in(left), recording_in(right), digests=digests)
    if outcome.is_empty:
        refuse(f"{left} and {right} have no calls to compare")
    for line in lines_of(outcome):
        typer.echo(line)
    if outcome.differences:
        raise typer.Exit(1)


def lines_of(outcome: Comparison) -> Iterator[str]:
    """Yield the lines that tell of *outcome*."""
    for difference in outcome.differences:
        yield from _lines_of(difference)
    ranks = f"{outcome.ranks} rank{'s' * (outcome.ranks != 1)}"
    counts = f"{outcome.equal} calls on {ranks} are equal, {outcome.digests} with digests"
    counts += f", {outcome.close} of these within the tolerance" * bool(outcome.close)
    if outcome.differences:
        counts += f"; {len(outcome.differences)} of {ranks} differ{'s' * (len(outcome.differences) == 1)}"
    yield counts
    if outcome.have_other_keys:
        yield "No values were compared, as the digests have different keys: record both with one SHIM_TRACE_DIGESTS."


def _lines_of(difference: Difference) -> Iterator[str]:
    yield f"rank {difference.rank}, call {difference.number}: {'; '.join(difference.whats)}"
    yield from (f"    {call.line()}" for call in difference.before)
    yield f"  A {_told(difference.left)}"
    yield from (f"    {call.line()}" for call in difference.left_after)
    yield f"  B {_told(difference.right)}"
    yield from (f"    {call.line()}" for call in difference.right_after)


def _told(call: Call | None) -> str:
    return "nothing: the rank makes no further call" if call is None else call.line()
