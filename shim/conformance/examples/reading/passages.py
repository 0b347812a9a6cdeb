"""Takes files apart into passages of text with examples, as reStructuredText, which the reader knows."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from typing import NamedTuple

_FENCE = re.compile(r"^([ \t]*)(```+|~~~+)([^\n`]*)$")
_DIRECTIVE = re.compile(r"\{(?:code-block|code-cell|code|sourcecode)\}")  # of MyST's Markdown, before the language
_PYTHON = re.compile(r"(?:python|ipython|py)\d?|pycon|doctest|testcode")
_SHOWN = re.compile(r"output|out|stdout")
_TEXT = re.compile(r"te?xt|console|none|plain\w*|log")
_MARKED, _UNMARKED, _OUTPUT, _PLAIN = ".. code-block:: python", ".. code-block::", ".. output::", ".. code-block:: text"


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
    """Give the lines of *markdown* with its fenced blocks as directives, those that are neither Python nor output left empty."""
    closing: str | None = None
    is_read = is_shown = False
    for line in markdown:
        fence = _FENCE.match(line)
        if closing is None and fence:
            closing = fence[2]
            directive = _directive_of(fence[3])
            is_read, is_shown = directive is not None, directive in (_OUTPUT, _PLAIN)
            yield f"{fence[1]}{directive}" if is_read else ""
        elif closing is not None and line.strip().startswith(closing):
            closing = None
            yield ""
        elif closing is None:
            yield line
        else:
            yield f"    {line}" if is_read and not (is_shown and line.lstrip().startswith(">>>")) else ""


def _directive_of(words: str) -> str | None:
    """Return the directive for a fence with *words* after it, None where they say a language other than Python and text."""
    language = re.search(r"[\w+#-]+", _DIRECTIVE.sub("", words))
    if language is None:
        return _UNMARKED
    kinds = ((_PYTHON, _MARKED), (_SHOWN, _OUTPUT), (_TEXT, _PLAIN))
    return next((directive for words_of, directive in kinds if words_of.fullmatch(language[0].lower())), None)


class _Page(HTMLParser):
    """Collects a page's text with the number of each line in it, its ``pre`` blocks as directives."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[int, str]] = []
        self.code: list[tuple[int, str]] | None = None
        self.directive = _UNMARKED

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self.code, self.directive = [], _UNMARKED
        if tag in ("pre", "code") and self.code is not None and "python" in (dict(attrs).get("class") or ""):
            self.directive = _MARKED

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre" and self.code is not None:
            line = self.getpos()[0]
            begin = self.code[0][0] if self.code else line
            self.lines += [(begin, ""), (begin, self.directive), (begin, "")]
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
