"""``shim conformance signatures``."""

from __future__ import annotations

import typer

from shim.cli.conformance.options import console_of

__all__ = ["signatures"]


def signatures() -> None:
    """Compare all signatures with the recorded ones, and those with the installed frameworks'.

    The exit status is 0 when all are equal, but for the exceptions that are listed with their reasons, 1 otherwise.
    """
    from shim.conformance.signatures.report import print_comparison

    if not print_comparison(console_of()):
        raise typer.Exit(1)
