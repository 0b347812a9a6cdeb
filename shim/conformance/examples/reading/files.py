"""Finds examples in files that a user names: Markdown, reStructuredText, HTML, Python, and folders of these.

In a Python file, those are the examples of its docstrings, or, where it begins with ``# ranks:``, the file itself: a case, as ``cases``
reads it. So is a block of code of any document that begins so. The framework of an example is the one it imports, or else the first
that its document does; a document that imports none has no examples.
Files are taken apart into passages of text with examples, as reStructuredText, which the reader knows.
"""

from __future__ import annotations

import ast
import os
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from shim.conformance.examples.example import Example
from shim.conformance.examples.reading.cases import CaseError, examples_of_case, is_case, marks_of_a_case
from shim.conformance.examples.reading.reader import code_blocks, examples_in, framework_of

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


_OTHERS = frozenset({"__pycache__", "node_modules", "site-packages"})
SUFFIXES = (".md", ".markdown", ".rst", ".txt", ".html", ".htm", ".py")


class Found(NamedTuple):
    """The ``examples`` of files and folders, by name, and the files in the folders that are ``without`` any."""

    examples: list[Example]
    without: list[Path]


def examples_in_files(paths: Sequence[Path]) -> Found:
    """Return the examples in the files of *paths* and below its folders.

    Raises ValueError with all that is wrong, each in a line that begins with the file's: what is no document, what cannot be read, code that is no Python, a
    case that has not the form of one, and each of *paths* that has no examples.
    """
    examples: list[Example] = []
    without: list[Path] = []
    problems: list[str] = []
    read: set[Path] = set()
    for path in paths:
        number = 0
        for file in _files(path, problems):
            name = str(file.relative_to(path if path.is_dir() else path.parent) if len(paths) == 1 else file)
            found = [] if file.resolve() in read else _examples_in_file(file, name, problems)
            number += len(found) or file.resolve() in read
            examples += found
            without += [] if found or file.resolve() in read else [file]
            read.add(file.resolve())
        if not number and not problems:
            problems.append(f"{path}: there are no examples in it")
    if problems:
        raise ValueError("\n".join(problems))
    return Found(examples, without)


def _files(path: Path, problems: list[str]) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in _below(path) if file.suffix in SUFFIXES and file.is_file())
    if path.suffix not in SUFFIXES:
        problems.append(f"{path}: is no document, whose name ends in one of {', '.join(SUFFIXES)}")
        return []
    return [path]


def _below(folder: Path) -> Iterator[Path]:
    """Give the files below *folder*, but for those of other people's packages, and in hidden folders such as .git and .venv."""
    for inner, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _OTHERS]
        yield from (Path(inner) / name for name in files)


def _examples_in_file(file: Path, name: str, problems: list[str]) -> list[Example]:
    try:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".py" and is_case(text):
            return [_in_folder(example, file) for example in examples_of_case(text, name)]
        passages = passages_of(text, file.suffix)
        if file.suffix == ".py" and (marked := list(marks_of_a_case(text))):
            raise CaseError([(marked[0], "only a case says so, and a case begins with # ranks:")])
        return [_in_folder(example, file) for passage in passages for example in _examples_in_passage(passage, name)]
    except CaseError as error:
        problems += [f"{file}:{line}: {problem}" for line, problem in error.problems]
    except SyntaxError as error:
        problems.append(f"{file}:{error.lineno}: {error.msg}")
    except UnicodeDecodeError as error:
        problems.append(f"{file}: is no UTF-8, at byte {error.start}")
    return []


def _in_folder(example: Example, file: Path) -> Example:
    return replace(example, folder=str(file.resolve().parent)) if example.is_case else example


def _examples_in_passage(passage: Passage, name: str) -> list[Example]:
    """Return the examples and cases of *passage*, in their order, numbered as they come. Raises CaseError, for broken code too."""
    name = f"{name}:{passage.owner}" if passage.owner else name
    cases, rest = _cases_apart(passage, name)
    framework = framework_of(rest)
    broken: list[tuple[int, str]] = []
    others = [] if framework is None else examples_in(rest, framework, name, name, broken)
    if broken:
        raise CaseError([(passage.numbers[line - 1], problem) for line, problem in broken])
    found = [*cases, *(_placed(example, passage, name) for example in others)]
    found.sort(key=lambda example: example.steps[0].line)
    return [replace(example, number=number) for number, example in enumerate(found, start=1)]


def _cases_apart(passage: Passage, name: str) -> tuple[list[Example], str]:
    """Return the cases among the blocks of code of *passage*, and its text without them."""
    lines = passage.text.expandtabs().splitlines()
    cases: list[Example] = []
    for block in code_blocks(passage.text):
        text = "\n".join(line.code or "" for line in block.lines)
        if is_case(text):
            cases += examples_of_case(text, name, [passage.numbers[line.number - 1] for line in block.lines])
            for line in block.lines:
                lines[line.number - 1] = ""
    return cases, "\n".join(lines)


def _placed(example: Example, passage: Passage, name: str) -> Example:
    """Return *example* with the lines of its file, and its own framework."""
    steps = []
    for step in example.steps:
        wanted = step.wanted and replace(step.wanted, line=passage.numbers[step.wanted.line - 1])
        steps.append(replace(step, line=passage.numbers[step.line - 1], wanted=wanted))
    framework = framework_of(example.text) or example.framework
    unread = tuple(passage.numbers[line - 1] for line in example.unread)
    place = f"{name}, line {steps[0].line}"
    return replace(example, framework=framework, steps=tuple(steps), place=place, unread=unread)
