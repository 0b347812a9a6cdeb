"""Finds examples in files that a user names: Markdown, reStructuredText, HTML, Python, and folders of these.

In a Python file, those are the examples of its docstrings, or, where it begins with ``# ranks:``, the file itself: a case, as ``cases``
reads it. So is a block of code of any document that begins so. The framework of an example is the one it imports, or else the first
that its document does; a document that imports none has no examples.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from shim.conformance.examples.example import Example
from shim.conformance.examples.reading.cases import CaseError, examples_of_case, is_case, marks_of_a_case
from shim.conformance.examples.reading.passages import Passage, passages_of
from shim.conformance.examples.reading.reader import code_blocks, examples_in, framework_of

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
