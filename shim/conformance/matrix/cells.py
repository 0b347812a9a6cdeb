"""What the matrix consists of: examples in rows, where they were run in columns, and a verdict in each cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from shim.conformance.examples.judging import Verdict
from shim.conformance.examples.suite import CASE, SHIM
from shim.conformance.kinds import KINDS
from shim.core.engines.choosing import choose


def engine_in_use() -> str:
    """Return the name of the engine that serves the groups of all examples."""
    return str(choose())


@dataclass(frozen=True, order=True)
class Column:
    """Where examples are run: on ``shim`` with tensors of a kind and an engine, or on the framework itself (``reference``)."""

    side: str
    tensors: str
    engine: str

    @property
    def key(self) -> str:
        return " ".join(part for part in (self.side, self.tensors, self.engine) if part)

    @property
    def title(self) -> str:
        return f"shim, {self.tensors}, {self.engine}" if self.side == SHIM else "framework itself"


@dataclass(frozen=True)
class Seen:
    """What the document shows after the code in ``line``, None for nothing, and what ``ranks`` saw there; ``difference`` is None for none.

    ``ranks`` is empty for a program that starts the ranks itself: its processes' output is told together.
    """

    line: int
    ranks: tuple[int, ...]
    shown: str | None
    seen: str
    difference: str | None = None


@dataclass(frozen=True)
class Failure:
    """What went wrong on ``ranks`` at ``line``, 0 where no line is known: a difference or a traceback, of the first of them."""

    ranks: tuple[int, ...]
    line: int
    text: str

    @property
    def summary(self) -> str:
        """The failure in a line: of a traceback, that which names the error."""
        place = f", line {self.line}" if self.line else ""
        return f"{ranks_in_words(self.ranks)}{place}: {error_of(self.text)}"


def error_of(text: str) -> str:
    """Return the line of *text*, a traceback or another failure, that says what is wrong."""
    _, traceback, after = text.rpartition("Traceback (most recent call last):\n")
    lines = (after if traceback else text).strip("\n").splitlines()
    named = (line for line in lines if line and not line.startswith(" "))  # frames of a traceback are indented
    return next(named, "no more is known") if traceback else (lines or ["no more is known"])[0].strip()


@dataclass(frozen=True)
class Cell:
    """What became of one example in one column. ``rules`` say how its code was changed for this machine.

    ``change`` says how the verdict is not the one on record, None where it is.
    """

    verdict: Verdict
    seconds: float
    reason: str = ""
    change: str | None = None
    rules: tuple[str, ...] = ()
    seen: tuple[Seen, ...] = ()
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True)
class Row:
    """One example, with its code by line; ``notes`` say where its document is wrong or holds for one version."""

    name: str
    framework: str
    kind: str
    place: str
    ranks: int
    code: tuple[tuple[int, str], ...]
    cells: Mapping[Column, Cell]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subject:
    """The examples of a framework in one column: how many there are, were run and applicable, and have which verdict.

    ``kind`` is that of their rows. ``unseen`` are on record and were not run. What is not ``recorded`` has no verdicts on record at all.
    """

    framework: str
    version: str
    column: Column
    found: int
    run: int
    counts: Mapping[Verdict, int]
    unseen: tuple[str, ...] = ()
    recorded: bool = True
    kind: str = ""

    @property
    def title(self) -> str:
        return f"{self.framework} {self.version}{', cases' * (self.kind == CASE)}"

    @property
    def on(self) -> str:
        """Where its examples were run, in a word or two; with their own kind of tensor, if nothing is said of it."""
        if self.column.side != SHIM:
            return "itself"
        return SHIM if self.column.tensors == self.framework else f"{SHIM}, {self.column.tensors}"


@dataclass(frozen=True)
class Matrix:
    """Everything that one run found. ``absent`` frameworks are not installed, ``missing`` ones were asked for besides, or their tensors."""

    rows: tuple[Row, ...]
    subjects: tuple[Subject, ...]
    passed: bool
    seconds: float
    versions: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def columns(self) -> list[Column]:
        """The columns that have cells, the framework itself first."""
        return sorted({column for row in self.rows for column in row.cells}, key=_order)

    @property
    def counts(self) -> Counter[Verdict]:
        return Counter(cell.verdict for _, _, cell in self.cells())

    @property
    def inapplicable(self) -> Counter[tuple[str, str]]:
        """How many examples do not go with a kind of tensor, by that and the reason."""
        places = ((column, cell) for _, column, cell in self.cells() if cell.verdict is Verdict.NOT_APPLICABLE)
        return Counter((column.tensors, cell.reason) for column, cell in places)

    def cells(self) -> Iterator[tuple[Row, Column, Cell]]:
        """Yield all cells with their places, row by row."""
        for row in self.rows:
            for column in sorted(row.cells, key=_order):
                yield row, column, row.cells[column]


def _order(column: Column) -> tuple[bool, int, str]:
    place = KINDS.index(column.tensors) if column.tensors in KINDS else -1
    return column.side == SHIM, place, column.engine


def ranks_in_words(ranks: tuple[int, ...]) -> str:
    """Return "rank 0" or "ranks 0, 1"."""
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
