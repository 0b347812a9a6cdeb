"""Port the launch lines of a text: a script, a page, a Dockerfile, a Makefile, YAML; and of a Python file, in its strings, comments and lists."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from itertools import accumulate

from shim.port.files.text import parse
from shim.port.launch_lines.commands import PlacedWord, port_arguments, port_commands, port_lists_of_strings
from shim.port.launch_lines.launch import Edit, Launched, Word, apply_edits, entry_at
from shim.port.launch_lines.launchers import Route, route_of
from shim.port.plan import Entry, Note, Plan

_OVER_LINES = Note("launch-incomplete", "the command goes on in the list's next lines", "change the launcher by hand")


def port_launch_lines(text: str, plan: Plan, parts: Sequence[tuple[int, int]] | None = None) -> Launched:
    """Return *text* with its launch lines ported by *plan*. *parts*: only those between these places, which are commands of a shell."""
    route = route_of(plan)
    if parts is None:
        found = [*port_commands(text, 0, len(text), route), *port_lists_of_strings(text, route), *_items(text, route)]
    else:
        found = [each for start, end in parts for each in port_commands(text, start, end, route)]
    return apply_edits(text, found)


def _items(text: str, route: Route) -> Iterator[Entry]:
    """Give an entry for each launcher that is an item of a list in YAML: where its arguments are is not certain."""
    commands = "|".join(re.escape(name) for each in route.sources for name in (*each.commands, *each.modules))
    for item in re.finditer(rf"^[ \t]*-[ \t]+([\"']?)({commands})\1[ \t]*$", text, re.MULTILINE):
        yield entry_at(text, item.start(2), "left", _OVER_LINES)


_OPENING = re.compile(r"""[A-Za-z]*(\"""|'''|"|')""")
_FORMAT_BEGIN = getattr(tokenize, "FSTRING_START", None)  # from Python 3.12 on a format string is several tokens
_FORMAT_END = getattr(tokenize, "FSTRING_END", None)


def port_launch_lines_in_python(text: str, plan: Plan) -> Launched:
    r"""Return *text*, the code of a module in which ``\n`` ends lines, with its launch lines ported by *plan*. Raises SyntaxError."""
    route = route_of(plan)
    places = _Places(text)
    found = list(_in_lists(text, places, route))
    taken = [edit for edit in found if isinstance(edit, Edit)]
    for start, end in _texts(text, places):
        if not any(edit.start < end and start < edit.end for edit in taken):
            found += port_commands(text, start, end, route)
    return apply_edits(text, found, is_python=True)


class _Places:
    """Positions in a text, by line and column."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self._lines)]

    def of_token(self, place: tuple[int, int]) -> int:
        return self._starts[place[0] - 1] + place[1]

    def of_node(self, line: int, column: int) -> int:
        """Return the position for what ast gives, in which *column* counts bytes."""
        text = self._lines[line - 1]
        return self._starts[line - 1] + (column if text.isascii() else len(text.encode()[:column].decode()))


def _texts(text: str, places: _Places) -> Iterator[tuple[int, int]]:
    """Give where the strings and comments begin and end, without their quotes."""
    begin = depth = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            start, end = places.of_token(token.start), places.of_token(token.end)
            if token.type == _FORMAT_BEGIN:
                begin = begin if depth else start
                depth += 1
            elif token.type == _FORMAT_END:
                depth -= 1
                if not depth:
                    yield _inside(text, begin, end)
            elif token.type == tokenize.COMMENT:
                yield start, end
            elif token.type == tokenize.STRING and not depth:
                yield _inside(text, start, end)
    except tokenize.TokenError as error:
        raise SyntaxError(str(error)) from None


def _inside(text: str, start: int, end: int) -> tuple[int, int]:
    opening = _OPENING.match(text, start)
    assert opening is not None
    return opening.end(), end - len(opening[1])


def _in_lists(text: str, places: _Places, route: Route) -> Iterator[Edit | Entry]:
    for node in ast.walk(parse(text)):
        if isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 1:
            yield from port_arguments(text, _words(text, node.elts, places), route)


def _words(text: str, elements: Sequence[ast.expr], places: _Places) -> list[PlacedWord]:
    """Return *elements* as words, up to the first that stands for several."""
    words = []
    for element in elements:
        if isinstance(element, ast.Starred):
            break
        start = places.of_node(element.lineno, element.col_offset)
        end = places.of_node(element.end_lineno or 0, element.end_col_offset or 0)
        words.append(PlacedWord(Word(_text_of(element, text[start:end]), text[start:end]), start, end))
    return words


def _text_of(element: ast.expr, source: str) -> str | None:
    """Return the text that *element* has in every run. Of a format string that begins as an option, it is what is between the quotes."""
    if isinstance(element, ast.Constant) and isinstance(element.value, str):
        return element.value
    option = re.fullmatch(r"""[fF](["'])(--?[\w-]+=\{[^{}]+\})\1""", source)
    return option[2] if option else None
