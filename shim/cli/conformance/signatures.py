"""``shim conformance signatures``."""

from __future__ import annotations

from typing import Annotated

import typer

from shim.cli.conformance.options import console_of


def signatures(
    old: Annotated[
        str | None, typer.Option("--from", metavar="RELEASE", help="A recorded release, such as paddle-2.6.")
    ] = None,
    new: Annotated[
        str | None,
        typer.Option("--to", metavar="RELEASE", help="The release to compare it with, such as paddle-3.3."),
    ] = None,
) -> None:
    """Compare all signatures with the recorded ones, and these with the installed frameworks'; or compare two recorded versions.

    The exit status is 0 if all are equal, except for the listed exceptions with their reasons, and 1 otherwise.
    With --from and --to, you see the changes between two recorded versions, by what they break, and the status is 0.
    """
    from shim.conformance.signatures.report import print_comparison

    if (old is None) != (new is None):
        raise typer.BadParameter("--from and --to go together")
    if old is not None and new is not None:
        _show_changes(old, new)
    elif not print_comparison(console_of()):
        raise typer.Exit(1)


def _show_changes(old: str, new: str) -> None:
    from shim.conformance.signatures.report import print_changes, record_named

    try:
        records = record_named(old), record_named(new)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if records[0].framework != records[1].framework:
        raise typer.BadParameter(f"--from {old!r} and --to {new!r} are not versions of one framework")
    print_changes(console_of(), *records)
