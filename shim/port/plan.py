"""What to port, what came of it, and what is reported of a place in the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

# left: the code is as it was, and does not run on the target before somebody changes it.
# changed: the code is ported, and something about it differs that the author has to know.
Kind = Literal["left", "changed"]


@dataclass(frozen=True, order=True)
class Entry:
    """One line of the report. ``line`` and ``column`` count from 1, in the source before the port; ``rule`` is a stable name of the reason."""

    line: int
    column: int
    kind: Kind
    rule: str
    why: str
    advice: str


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


class Left(Exception):
    """A place that cannot be ported. ``rule``, ``why`` and ``advice`` are those of its entry."""

    def __init__(self, rule: str, why: str, advice: str) -> None:
        super().__init__(why)
        self.rule = rule
        self.why = why
        self.advice = advice
