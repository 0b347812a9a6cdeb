"""What to port, what is reported of a place in the source, and what came of the files of a port."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

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
Scope = Literal["collectives", "statements", "files"]


@dataclass(frozen=True)
class Plan:
    """From which API to which: names of ``apis.APIS``. ``onto`` and ``scope`` are as ``shim port --help`` explains them."""

    source: str
    target: str
    onto: Onto = "shim"
    scope: Scope = "collectives"
    in_package: bool = False  # the file is a module of a package, which imports what is beside it by a dot
    ignored: frozenset[str] = frozenset()  # rules whose entries are not reported
    marks: bool = False  # places that are left get a comment
    # Dotted names that the file imports from other files, with the API's names that they are there.
    reexports: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Ported:
    """The text after the port, the number of places that were ported, and the entries in the order of the source."""

    text: str
    places: int
    entries: Sequence[Entry]


class Note(NamedTuple):
    """What an entry says: its rule, why, and what to do."""

    rule: str
    why: str
    advice: str


class Left(Exception):
    """A place that cannot be ported, and stays as it is. ``note`` is what its entry says."""

    def __init__(self, rule: str, why: str, advice: str) -> None:
        super().__init__(why)
        self.note = Note(rule, why, advice)


@dataclass(frozen=True, order=True)
class Finding:
    """An entry, and the line of the file at which it stands. In a notebook ``entry.line`` counts within *cell*, from 1; elsewhere *cell* is 0."""

    file_line: int
    entry: Entry
    cell: int = 0


@dataclass(frozen=True)
class Problem:
    """Why a file was not ported, and what to do."""

    why: str
    advice: str


@dataclass(frozen=True)
class FileResult:
    """One file: its bytes before and after, which are equal where nothing is ported, and its text as a reader sees it."""

    path: Path
    target: Path
    before: bytes = b""
    after: bytes = b""
    encoding: str = "utf-8"
    places: int = 0
    findings: Sequence[Finding] = ()
    problem: Problem | None = None
    is_new: bool = False  # there is no such file before

    @property
    def is_changed(self) -> bool:
        return self.before != self.after

    @cached_property
    def lines(self) -> list[str]:
        """The lines before, as entries count them."""
        return re.split(r"\r\n|\r|\n", self.texts[0])

    @property
    def texts(self) -> tuple[str, str]:
        """The text before and after, for showing: bytes that are no text are replaced."""
        return self.before.decode(self.encoding, "replace"), self.after.decode(self.encoding, "replace")


@dataclass(frozen=True)
class Result:
    """A whole port: ``files`` are those with something to tell, ``searched`` is the number of all that were looked at."""

    plan: Plan
    files: Sequence[FileResult]
    searched: int
    known: int = 0  # entries that are not in it, as they are in the baseline
    verify: str = ""  # the command that compares the original with the port

    @property
    def places(self) -> int:
        return sum(file.places for file in self.files)

    @property
    def changed(self) -> list[FileResult]:
        return [file for file in self.files if file.is_changed]

    @property
    def unported(self) -> list[FileResult]:
        return [file for file in self.files if file.problem is not None]

    def count(self, kind: str) -> int:
        """Return the number of entries of *kind*."""
        return sum(finding.entry.kind == kind for file in self.files for finding in file.findings)
