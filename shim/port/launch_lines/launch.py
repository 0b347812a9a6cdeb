"""What a launch line says, whichever launcher it is for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Word(NamedTuple):
    """A word of a command: ``text`` as the program gets it, ``source`` as it is written. ``text`` is None where only the run decides it."""

    text: str | None
    source: str


class Note(NamedTuple):
    """A reason to report a launch line, as in ``Entry``."""

    rule: str
    why: str
    advice: str


@dataclass
class Launch:
    """A launch on one host: ``ranks`` and ``restarts`` are written as in the source; in Python, ``ranks`` can be an expression there. The
    program begins at word number ``program``."""

    ranks: str = ""
    ranks_are_expression: bool = False
    is_module: bool = False
    restarts: str = ""
    variables: list[str] = field(default_factory=list)
    program: int = 0
    notes: list[Note] = field(default_factory=list)


class Refused(Exception):
    """The line stays as it is, for the reason that ``note`` gives."""

    def __init__(self, rule: str, why: str, advice: str) -> None:
        super().__init__(why)
        self.note = Note(rule, why, advice)
