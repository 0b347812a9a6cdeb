"""What to port, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from shim.port.entries import Entry

Onto = Literal["shim", "native"]
Scope = Literal["collectives", "statements"]


@dataclass(frozen=True)
class Plan:
    """From which API to which: names of ``apis.APIS``. ``onto`` and ``scope`` are as ``shim port --help`` explains them."""

    source: str
    target: str
    onto: Onto = "shim"
    scope: Scope = "collectives"
    in_package: bool = False  # the file is a module of a package, which imports what is beside it by a dot
    reexports: Sequence[
        tuple[str, str]
    ] = ()  # dotted names that the file imports from other files, with the API's names that they are there


@dataclass(frozen=True)
class Ported:
    """The text after the port, the number of places that were ported, and the entries in the order of the source."""

    text: str
    places: int
    entries: Sequence[Entry]
