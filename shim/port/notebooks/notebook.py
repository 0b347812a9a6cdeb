"""A notebook as its code cells, by their places in the JSON, and the notebook again with other sources in them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shim.port.files.text import NotText, split_lines

_BLANK = re.compile(r"[ \t\n\r]*")
_STRINGS = json.JSONDecoder()
_LITERAL = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|NaN|-?Infinity")


@dataclass(frozen=True)
class Value:
    """A JSON value from ``start`` to ``end`` in the text: a string, a list or mapping of values, or None for what has no parts."""

    content: str | list[Value] | dict[str, Value] | None
    start: int
    end: int

    def at(self, name: str) -> Value | None:
        """Return the member *name*, None where there is none."""
        return self.content.get(name) if isinstance(self.content, dict) else None

    def items(self) -> Iterator[Value]:
        """Give the elements of a list; nothing of other values."""
        if isinstance(self.content, list):
            yield from self.content


def read_json(text: str) -> Value:
    """Return what *text* holds. Raises ValueError where it is not JSON."""
    value = _value(text, _after_blank(text, 0))
    if (end := _after_blank(text, value.end)) != len(text):
        raise json.JSONDecodeError("more follows", text, end)
    return value


def _value(text: str, start: int) -> Value:
    first = text[start : start + 1]
    if first == '"':
        string, end = _STRINGS.raw_decode(text, start)
        return Value(string, start, end)
    if first == "[":
        elements, end = [], _after_blank(text, start + 1)
        while text[end : end + 1] != "]":
            elements.append(_value(text, end))
            end = _next(text, elements[-1].end, "]")
        return Value(elements, start, end + 1)
    if first == "{":
        members, end = {}, _after_blank(text, start + 1)
        while text[end : end + 1] != "}":
            name = _value(text, end)
            colon = _after_blank(text, name.end)
            if not isinstance(name.content, str) or text[colon : colon + 1] != ":":
                raise json.JSONDecodeError("a name and a colon are expected", text, end)
            members[name.content] = _value(text, _after_blank(text, colon + 1))
            end = _next(text, members[name.content].end, "}")
        return Value(members, start, end + 1)
    if (literal := _LITERAL.match(text, start)) is None:
        raise json.JSONDecodeError("a value is expected", text, start)
    return Value(None, start, literal.end())


def _next(text: str, position: int, closing: str) -> int:
    """Return where the next element or the *closing* bracket is, after the element that ends at *position*."""
    position = _after_blank(text, position)
    if text[position : position + 1] == ",":
        position = _after_blank(text, position + 1)
        if text[position : position + 1] != closing:
            return position
    elif text[position : position + 1] == closing:
        return position
    raise json.JSONDecodeError(f"a comma or {closing} is expected", text, position)


def _after_blank(text: str, position: int) -> int:
    blank = _BLANK.match(text, position)
    assert blank is not None
    return blank.end()


class NotANotebook(NotText):
    """The file is no notebook that can be read. ``advice`` says what to do."""

    def __init__(self, why: str, advice: str = "open it in Jupyter and save it again") -> None:
        super().__init__(why, advice)


@dataclass(frozen=True)
class Cell:
    """A code cell: cell ``number`` of the notebook, from 1. ``value`` is its source in the JSON text."""

    number: int
    source: str
    value: Value


def code_cells(text: str) -> list[Cell]:
    """Return the cells with code in *text*, which is the JSON of a notebook. Raises NotANotebook."""
    try:
        notebook = read_json(text)
    except (ValueError, RecursionError) as error:
        raise NotANotebook(f"it is not JSON: {error}") from None
    cells = notebook.at("cells")
    if cells is None or not isinstance(cells.content, list):
        old = ", but one of Jupyter before version 4" if notebook.at("worksheets") else ""
        raise NotANotebook(f"it is not a notebook with cells{old}")
    found = []
    for number, cell in enumerate(cells.items(), start=1):
        kind, source = cell.at("cell_type"), cell.at("source")
        if kind is not None and kind.content == "code" and source is not None:
            found.append(Cell(number, _joined(source), source))
    return found


def line_in_file(text: str, cell: Cell, line: int) -> int:
    """Return the line of the file in which *line* of *cell* stands."""
    place, seen = cell.value, 1
    for element in cell.value.items():
        place = element
        seen += str(element.content).count("\n")
        if seen > line:
            break
    return text.count("\n", 0, place.start) + 1


def with_sources(text: str, sources: Mapping[int, str], cells: Sequence[Cell]) -> str:
    """Return *text* with the *sources* of the cells with these numbers; all else keeps its bytes, and so do lines that stay as they are."""
    pieces, position = [], 0
    ascii_only = text.isascii() and re.search(r"\\u(?!00[01])[0-9a-fA-F]{4}", text) is not None
    for cell in cells:
        if cell.number in sources:
            value = cell.value
            pieces += [text[position : value.start], _written(text, value, sources[cell.number], ascii_only)]
            position = value.end
    return "".join([*pieces, text[position:]])


def _joined(source: Value) -> str:
    parts = [source] if isinstance(source.content, str) else list(source.items())
    if not all(isinstance(part.content, str) for part in parts) or source.content is None:
        raise NotANotebook("a cell's source is neither a string nor a list of strings")
    return "".join(str(part.content) for part in parts)


def _written(text: str, value: Value, source: str, ascii_only: bool) -> str:
    """Return the JSON of *source* in the form of *value*: one string, or a string for each line, with the same blanks between."""
    if isinstance(value.content, str):
        return json.dumps(source, ensure_ascii=ascii_only)
    elements = list(value.items())
    kept = {str(each.content): text[each.start : each.end] for each in elements}
    lines = [kept.get(line) or json.dumps(line, ensure_ascii=ascii_only) for line in split_lines(source)]
    opening = text[value.start : elements[0].start] if elements else "["
    closing = text[elements[-1].end : value.end] if elements else "]"
    between = [text[one.end : following.start] for one, following in itertools.pairwise(elements)]
    usual = between[0] if between else "," + (opening[1:] or " ")
    separators = ["", *between, *[usual] * len(lines)]
    return opening + "".join(map(str.__add__, separators, lines)) + closing
