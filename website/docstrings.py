"""An extension of griffe: the house style of our docstrings as Markdown, in which ``Raises:``, ``Deviates:`` and ``See:`` are sections.

Python's own names stay code; errors of this project's link to the page about them, pages named in the text to those pages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from griffe import Attribute, Class, Docstring, Extension, Object

from checks.source import string_list

_ROOT = Path(__file__).resolve().parents[1]
_TITLES = {"Raises": "Raises", "Deviates": "Differs", "See": "The framework's page"}
_SECTION = re.compile(rf"^({'|'.join(_TITLES)}): *")
_BETWEEN_ERRORS = re.compile(r"; (?=(?:and )?[A-Z]\w*Error\b)")
_PARAMETER = re.compile(r"(?<![*\w])\*(\w+)\*(?![*\w])")
_PAGE = re.compile(r"\bdocs/(\w+)\.md\b")


class Docstrings(Extension):
    """Turns every docstring into Markdown once its package has been read."""

    def __init__(self) -> None:
        tree = ast.parse((_ROOT / "shim/errors.py").read_text(encoding="utf-8"))
        self._error = re.compile(rf"(?:\b|(`+))({'|'.join(string_list(tree, '__all__') or [])})\b(?(1)\1)")

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = self.as_markdown(obj.docstring.value)

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """Name the attributes of which nothing is said in one line, instead of under a heading for each."""
        silent = [each for each in cls.members.values() if isinstance(each, Attribute) and not each.has_docstring]
        for member in silent:
            del cls.members[member.name]
        names = [f"`{member.name}`" for member in silent if _is_of_use(member)]
        if names:
            text = "" if cls.docstring is None else cls.docstring.value
            cls.docstring = Docstring(f"{text}\n\nAttributes\n:   {', '.join(names)}", parent=cls)

    def as_markdown(self, docstring: str) -> str:
        """Return *docstring* as Markdown: its text, and then its sections as lists of definitions."""
        text, sections = _divided(docstring)
        parts = [self._linked(_without_literal_marks(text)).strip("\n")]
        for name, items in sections.items():
            entries = [f":   {self._entry(name, item)}" for item in items]
            parts.append("\n\n".join([f"{_TITLES[name]}\n{entries[0]}", *entries[1:]]))
        return "\n\n".join(parts)

    def _entry(self, section: str, item: str) -> str:
        if section == "See":
            return f"<{item}>"
        text = re.sub(r"^(and )?([A-Z]\w*Error)\b", r"`\2`", item) if section == "Raises" else item
        return self._linked(text)

    def _linked(self, text: str) -> str:
        """Mark up what *text* names, but for its code: parameters, errors of ours, pages."""
        return "\n".join(line if line.startswith("    ") else self._linked_line(line) for line in text.split("\n"))

    def _linked_line(self, line: str) -> str:
        line = self._error.sub(r"[`\2`][shim.errors.\2]", _PARAMETER.sub(r"`\1`", line))
        return _PAGE.sub(r'<a href="../../\1/">\g<0></a>', line)


def _is_of_use(attribute: Attribute) -> bool:
    """Tell constants, and what every object of the class has, from what the class itself needs."""
    name = attribute.name
    return not name.startswith("_") and (not name.islower() or attribute.value is None)


def _divided(docstring: str) -> tuple[str, dict[str, list[str]]]:
    """Return the text of *docstring*, and the items of each of its sections."""
    text: list[str] = []
    sections: dict[str, list[str]] = {}
    items: list[str] | None = None
    for line in docstring.splitlines():
        begun = _SECTION.match(line)
        if begun:
            items = sections.setdefault(begun[1], [])
            items.append(line[begun.end() :])
        elif not line.strip():
            items = None
            text.append("")
        elif items is not None:
            items[-1] += f" {line.strip()}"
        else:
            text.append(line)
    if "Raises" in sections:
        sections["Raises"] = list(_errors(sections["Raises"]))
    return "\n".join(text), sections


def _errors(items: list[str]) -> Iterator[str]:
    for item in items:
        yield from _BETWEEN_ERRORS.split(item)


def _without_literal_marks(text: str) -> str:
    """Return *text* without the ``::`` before blocks of code, which Markdown tells by their indent alone."""
    return re.sub(r"^::$\n?", "", re.sub(r"(?<=\w)::$", ":", text, flags=re.MULTILINE), flags=re.MULTILINE)
