"""Comments in ported code: those by which the author leaves a line alone, and those that mark a place that the port has left."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate

from shim.port.edits import Edits
from shim.port.plan import Entry

_LEAVE = re.compile(r"(?:#|//|<!--)[ \t]*shim:[ \t]*leave\b(?:\[([^\]]*)\])?")
_LINE = "the whole line"
_MARK = "# shim: left: "
_NO_STATEMENT = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


class Comments:
    """The comments in *text*: ``# shim: leave`` leaves the line as it is, ``# shim: leave[rule]`` hides entries of the rule there.

    A statement of Python counts as one line, and so does a command of a shell over lines that backslashes join.
    """

    def __init__(self, text: str, *, is_python: bool) -> None:
        self._text = text
        self._is_python = is_python
        self._left: dict[int, set[str]] = {}  # by line, from 1: the rules, or _LINE
        for first, last, comments in self._lines() if _LEAVE.search(text) else ():
            found = _LEAVE.findall(comments)
            told = {rule.strip() for rules in found for rule in rules.split(",")} if all(found) else {_LINE}
            self._left.update((line, told) for line in range(first, last + 1) if found)

    @property
    def leaves_lines(self) -> bool:
        """Whether there is a line that stays as it is."""
        return any(_LINE in told for told in self._left.values())

    def leaves(self, line: int) -> bool:
        """Tell whether *line* stays as it is."""
        return _LINE in self._left.get(line, ())

    def hides(self, entry: Entry) -> bool:
        """Tell whether *entry* is not to be reported."""
        return self.leaves(entry.line) or entry.rule in self._left.get(entry.line, ())

    def spans(self) -> list[tuple[int, int]]:
        """Return where the statements begin and end that stay as they are, in bytes."""
        starts, lines = self._starts(), self._lines() if self.leaves_lines else ()
        return [(starts[first - 1], starts[last] - 1) for first, last, _ in lines if self.leaves(first)]

    def mark(self, entries: Iterable[Entry], edits: Edits) -> None:
        """Write a comment before each statement with *entries*, in place of those that an earlier port has written."""
        for mark in re.finditer(rf"^[ \t]*{_MARK}.*\n".encode(), edits.text, re.MULTILINE):
            edits.remove(*mark.span())
        starts, lines = self._starts(), self._text.split("\n")
        firsts = {line: first for first, last, _ in self._lines() for line in range(first, last + 1)}
        told = [(firsts.get(each.line, 0), f"{each.why} [{each.rule}]") for each in entries]
        for first, why in dict.fromkeys(each for each in told if each[0]):
            indent = lines[first - 1][: -len(lines[first - 1].lstrip())]
            edits.insert(starts[first - 1] + len(indent), f"{_MARK}{' '.join(why.split())}\n{indent}")

    def _starts(self) -> list[int]:
        """Return where the lines begin, in bytes."""
        return [0, *accumulate(len(line.encode()) + 1 for line in self._text.split("\n"))]

    def _lines(self) -> Iterator[tuple[int, int, str]]:
        """Give the first and the last line of each statement or command, and the comments in it."""
        if not self._is_python:
            for command in re.finditer(r"(?:.*\\\n)*.*\n?", self._text):
                first = self._text.count("\n", 0, command.start()) + 1
                yield first, first + command[0].rstrip("\n").count("\n"), command[0]
            return
        first, comments = 0, ""
        with suppress(tokenize.TokenError):  # whoever parses the text says why
            for token in tokenize.generate_tokens(io.StringIO(self._text, newline="").readline):
                if token.type == tokenize.COMMENT and first:
                    comments += token.string
                elif token.type == tokenize.NEWLINE:
                    yield first, token.start[0], comments
                    first, comments = 0, ""
                elif not first and token.type not in _NO_STATEMENT:
                    first = token.start[0]
