"""Finds examples in files that a user names: Markdown, reStructuredText, HTML, Python, and folders of these.

In a Python file, those are the examples of its docstrings, or, where it begins with ``# ranks:``, the file itself: a case, as ``cases``
reads it. The framework of an example is the one it imports; an example that imports none of them is none.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path

from shim.conformance.examples.cases import examples_of_case, is_case
from shim.conformance.examples.example import Example
from shim.conformance.examples.reader import examples_in

__all__ = ["SUFFIXES", "examples_in_files", "framework_of"]

SUFFIXES = (".md", ".markdown", ".rst", ".txt", ".html", ".htm", ".py")
_IMPORT = re.compile(r"^[ \t]*(?:>>>|\.\.\.)?[ \t]*(?:import|from)[ \t]+(torch|paddle|mindspore)\b", re.MULTILINE)
_FENCE = re.compile(r"^([ \t]*)(```+|~~~+)[ \t]*(?:\{[^}]*\}|python\d?|py|pycon|ipython)?[^\n`]*$", re.MULTILINE)


def framework_of(code: str) -> str | None:
    """Return the framework that *code* imports first, None for none of them."""
    found = _IMPORT.search(code)
    return found[1] if found else None


def examples_in_files(paths: Iterable[Path]) -> list[Example]:
    """Return the examples in the files of *paths* and below its folders, by name. Raises ValueError for what is no document."""
    return [example for path in paths for file in _files(path) for example in _examples_in_file(file, path)]


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path} is no document: it must end in one of {', '.join(SUFFIXES)}")
    return [path]


def _examples_in_file(file: Path, given: Path) -> list[Example]:
    text = file.read_text(encoding="utf-8")
    name = str(file.relative_to(given if given.is_dir() else given.parent))
    if file.suffix == ".py":
        if is_case(text):
            framework = framework_of(text)
            if framework is None:
                raise ValueError(f"{file} imports none of torch, paddle and mindspore")
            return examples_of_case(text, framework, name)
        return [example for owner, doc in _docstrings(text) for example in _examples(doc, f"{name}:{owner}")]
    if file.suffix in (".html", ".htm"):
        return _examples(_text_of_html(text), name)
    return _examples(_with_directives(text) if file.suffix in (".md", ".markdown") else text, name)


def _examples(text: str, name: str) -> list[Example]:
    framework = framework_of(text)
    return [] if framework is None else examples_in(text, framework, name, name)


def _docstrings(source: str) -> Iterator[tuple[str, str]]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield getattr(node, "name", "module"), inspect.cleandoc(text)


def _with_directives(markdown: str) -> str:
    """Return *markdown* with its fenced blocks as directives of reStructuredText, which the reader knows; lines keep their number."""
    lines: list[str] = []
    closing: str | None = None
    for line in markdown.splitlines():
        fence = _FENCE.match(line)
        if closing is None and fence:
            closing = fence[2]
            lines.append(f"{fence[1]}.. code-block:: python")
        elif closing is not None and line.strip().startswith(closing):
            closing = None
            lines.append("")
        else:
            lines.append(f"    {line}" if closing is not None else line)
    return "\n".join(lines)


class _Blocks(HTMLParser):
    """Collects a page's text, its ``pre`` blocks as directives."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.code: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self.code = []

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre" and self.code is not None:
            body = "\n".join(f"    {line}" for line in "".join(self.code).splitlines())
            self.parts.append(f"\n.. code-block:: python\n\n{body}\n\n")
            self.code = None

    def handle_data(self, data: str) -> None:
        (self.parts if self.code is None else self.code).append(data)


def _text_of_html(page: str) -> str:
    blocks = _Blocks()
    blocks.feed(page)
    blocks.close()
    return "".join(blocks.parts)
