"""Takes files apart into passages of text with examples, as reStructuredText, which the reader knows."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from typing import NamedTuple

__all__ = ["Passage", "passages_of"]

_FENCE = re.compile(r"^([ \t]*)(```+|~~~+)[ \t]*(?:\{[^}]*\}|python\d?|py|pycon|ipython)?[^\n`]*$")
_DIRECTIVE = ".. code-block:: python"


class Passage(NamedTuple):
    """Text as reStructuredText: a file's own, or that of the docstring of ``owner`` in it. ``numbers`` has the file's line of each line."""

    text: str
    numbers: Sequence[int]
    owner: str = ""


def passages_of(text: str, suffix: str) -> list[Passage]:
    """Return the passages of a file with this *text*, whose name ends in *suffix*. Raises SyntaxError for Python that is none."""
    if suffix == ".py":
        return list(_docstrings(text))
    if suffix in (".html", ".htm"):
        return [_of_html(text)]
    lines = text.splitlines()
    if suffix in (".md", ".markdown"):
        lines = list(_with_directives(lines))
    return [Passage("\n".join(lines), range(1, len(lines) + 1))]


def _docstrings(source: str) -> Iterator[Passage]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds) and (text := ast.get_docstring(node, clean=False)):
            first, *rest = text.expandtabs().splitlines()
            lines = [first.lstrip(), *textwrap.dedent("\n".join(rest)).split("\n")]
            begin = node.body[0].lineno
            owner = getattr(node, "name", "module")
            yield Passage("\n".join(lines), range(begin, begin + len(lines)), owner)


def _with_directives(markdown: Sequence[str]) -> Iterator[str]:
    """Give the lines of *markdown* with its fenced blocks as directives."""
    closing: str | None = None
    for line in markdown:
        fence = _FENCE.match(line)
        if closing is None and fence:
            closing = fence[2]
            yield f"{fence[1]}{_DIRECTIVE}"
        elif closing is not None and line.strip().startswith(closing):
            closing = None
            yield ""
        else:
            yield f"    {line}" if closing is not None else line


class _Page(HTMLParser):
    """Collects a page's text with the number of each line in it, its ``pre`` blocks as directives."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[int, str]] = []
        self.code: list[tuple[int, str]] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self.code = []

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre" and self.code is not None:
            line = self.getpos()[0]
            begin = self.code[0][0] if self.code else line
            self.lines += [(begin, ""), (begin, _DIRECTIVE), (begin, "")]
            self.lines += [(number, f"    {text}") for number, text in self.code]
            self.lines += [(line, ""), (line, "")]
            self.code = None

    def handle_data(self, data: str) -> None:
        into = self.lines if self.code is None else self.code
        for number, text in enumerate(data.split("\n"), start=self.getpos()[0]):
            text = " ".join(text.splitlines())  # a form feed ends a line for the reader, and none of the file's
            if into and into[-1][0] == number:
                into[-1] = number, into[-1][1] + text
            else:
                into.append((number, text))


def _of_html(text: str) -> Passage:
    page = _Page()
    page.feed(text)
    page.close()
    return Passage("\n".join(line for _, line in page.lines), [number for number, _ in page.lines])
