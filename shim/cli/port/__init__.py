"""``shim port``: distributed code from one framework's collective API to another's."""

from __future__ import annotations

from shim.cli.port.command import port

__all__ = ["port"]
