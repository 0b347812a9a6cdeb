"""Where the values of a JSON text stand in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

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
