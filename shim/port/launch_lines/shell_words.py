"""Split a command of a shell into its words, with their places, as far as a port needs it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shim.port.launch_lines.launch import Word

# One piece of a word. Quotes and substitutions may have blanks; braces are those of format strings and of templates. What is quoted may go on
# over lines that a backslash joins.
_PIECE = re.compile(
    r"""(?P<quoted>"(?:[^"\\\n]|\\.|\\\n)*"|'[^'\n]*')"""
    r"""|(?P<substitution>\$\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\$?\{\{?[^{}\n]*\}\}?|<[\w.\- ]+>)"""
    r"""|(?P<escaped>\\[^\nnrt])"""
    r"""|(?P<plain>[^\s"'\\;|&<>()`{}#]|\#(?<=\S\#))"""
)
_BETWEEN = re.compile(r"(?:[ \t]|\\{1,2}[ \t]*\n)+")  # in a string of Python the backslash may be escaped itself


@dataclass(frozen=True)
class PlacedWord:
    """A word, and its place in the text."""

    word: Word
    start: int
    end: int


def split_words(text: str, start: int, end: int) -> list[PlacedWord]:
    """Return the words of the command that goes on at *start*, at the latest until *end*: up to the end of the line, if no backslash continues
    it, or to what ends a command in a shell or a code span in Markdown."""
    words = []
    position = start
    while between := _BETWEEN.match(text, position, end):
        word = _word_at(text, between.end(), end)
        if word is None:
            break
        words.append(word)
        position = word.end
    return words


def _word_at(text: str, start: int, end: int) -> PlacedWord | None:
    position, value = start, ""
    while piece := _PIECE.match(text, position, end):
        value += piece[0][1:-1] if piece["quoted"] else piece[0]
        position = piece.end()
    if position == start:
        return None
    return PlacedWord(Word(value, text[start:position]), start, position)
