"""What came of the files of a port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shim.port.plan import Entry, Plan


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
