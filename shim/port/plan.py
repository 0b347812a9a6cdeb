"""What to port, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from shim.port.entries import Entry

__all__ = ["Onto", "Plan", "Ported"]

Onto = Literal["shim", "native"]


@dataclass(frozen=True)
class Plan:
    """From which API to which: names of ``apis.APIS``. ``onto`` is as ``shim port --help`` explains it."""

    source: str
    target: str
    onto: Onto = "shim"


@dataclass(frozen=True)
class Ported:
    """The text after the port, the number of places that were ported, and the entries in the order of the source."""

    text: str
    places: int
    entries: Sequence[Entry]
