"""What a launch line says, whichever launcher it is for, and the changes of the text that it stands in."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shim.port.comments import Comments
from shim.port.plan import Entry, Kind, Note, Ported


class Word(NamedTuple):
    """A word of a command: ``text`` as the program gets it, ``source`` as it is written. ``text`` is None where only the run decides it."""

    text: str | None
    source: str


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


@dataclass(frozen=True, order=True)
class Edit:
    """Replace the text from ``start`` to ``end``."""

    start: int
    end: int
    replacement: str


@dataclass(frozen=True)
class Launched(Ported):
    """A text with its launch lines ported. ``joined`` has a pair for each place at which lines were joined: the line of the
    new text, and how many lines of the old text are missing up to there."""

    joined: Sequence[tuple[int, int]] = ()

    def line_before(self, line: int) -> int:
        """Return the line of the old text that is *line* of the new one."""
        place = bisect_left(self.joined, (line, 0))
        return line + (self.joined[place - 1][1] if place else 0)


def apply_edits(text: str, found: Sequence[Edit | Entry], *, is_python: bool = False) -> Launched:
    """Return *text* with all edits that are *found*, which do not overlap, made, but for lines that a comment leaves alone."""
    comments = Comments(text, is_python=is_python)
    entries = [each for each in found if isinstance(each, Entry) and not comments.hides(each)]
    edits = [each for each in found if isinstance(each, Edit)]
    if comments.leaves_lines:
        edits = [each for each in edits if not comments.leaves(text.count("\n", 0, each.start) + 1)]
    pieces, joined = [], []
    position, line, lost = 0, 1, 0
    for edit in sorted(edits):
        pieces += [text[position : edit.start], edit.replacement]
        line += text.count("\n", position, edit.start) + edit.replacement.count("\n")
        if missing := text.count("\n", edit.start, edit.end) - edit.replacement.count("\n"):
            lost += missing
            joined.append((line, lost))
        position = edit.end
    return Launched("".join([*pieces, text[position:]]), len(edits), sorted(entries), joined)


def entry_at(text: str, position: int, kind: Kind, note: Note) -> Entry:
    """Return the entry for what stands at *position* of *text*."""
    begin = text.rfind("\n", 0, position) + 1
    return Entry(text.count("\n", 0, position) + 1, position - begin + 1, kind, *note)
