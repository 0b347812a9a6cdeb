"""Port one file's text: its code, around form feeds, and the launch lines in it."""

from __future__ import annotations

import ast
import dataclasses
import io
import re
import tokenize
from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from shim.port.apis import APIS
from shim.port.files.mentions import mentions_api, mentions_launcher
from shim.port.files.text import is_python, parse
from shim.port.launch_lines.launch import Launched
from shim.port.launch_lines.texts import port_launch_lines_in_python
from shim.port.plan import Plan, Ported
from shim.port.reading.source_file import SourceFile
from shim.port.rules.imports import port_imports
from shim.port.rules.port import Port
from shim.port.rules.spelling import Spelling
from shim.port.rules.walk import Walk
from shim.port.tensors.walk import port_statements

# LibCST loses form feeds before statements, and takes all later code for what stands a character before it: they get lines of their own.
# See: https://github.com/Instagram/LibCST (1.9.0); to be removed when ``parse_module("\\fx = 1").code`` has the form feed.
_MARK = "# shim port: form feed\n"
_NO_STATEMENT = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


class FormFeedLost(Exception):
    """The port has removed a mark, so that the form feed cannot be put back."""


def with_form_feeds(text: str, plan: Plan, port: Callable[[str, Plan], Ported]) -> Ported:
    """Return what *port* makes of *text*, where form feeds before statements get lines of their own in the meantime. Raises SyntaxError."""
    places = _before_statements(text) if "\f" in text else []
    if not places:
        return port(text, plan)
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    ported = port(_MARK.join(pieces), plan)
    if ported.text.count(_MARK) != len(places):
        raise FormFeedLost("a form feed got lost")
    lines = [text.count("\n", 0, place) + 1 for place in places]  # of the form feeds

    def before(line: int) -> int:
        return next((line - number for number, mark in enumerate(lines) if line <= mark + number), line - len(lines))

    entries = [replace(entry, line=before(entry.line)) for entry in ported.entries]
    return replace(ported, text=ported.text.replace(_MARK, ""), entries=entries)


def _before_statements(text: str) -> list[int]:
    """Return where the form feeds end that stand on a line before the first word of a statement."""
    places = []
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    is_first = True
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.NEWLINE:
                is_first = True
            elif is_first and token.type not in _NO_STATEMENT:
                is_first = False
                begin = starts[token.start[0] - 1]
                if (feed := text.rfind("\f", begin, begin + token.start[1])) >= 0:
                    places.append(feed + 1)
    except tokenize.TokenError as error:
        raise SyntaxError(str(error)) from None
    return places


_DEEPEST = 400  # nodes of Python's syntax tree that are in each other


def port_source(source: str, plan: Plan) -> Ported:
    """Return *source*, the text of a Python file, ported by *plan*.

    Raises SyntaxError for text that is no Python 3, and RecursionError for expressions that are nested too deeply to be read.
    """
    try:
        return with_form_feeds(source, plan, _ported)
    except cst.ParserSyntaxError as error:
        raise SyntaxError(error.message, (None, error.raw_line, error.raw_column + 1, None)) from None


def _check_depth(source: str) -> None:
    """Raise RecursionError for expressions that are nested too deeply; to find that out while they are read would take minutes."""
    try:
        level: list[ast.AST] = [parse(source)]
    except SyntaxError:
        return  # whoever reads it next says why
    except MemoryError:
        raise RecursionError from None
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise RecursionError


def _ported(source: str, plan: Plan) -> Ported:
    _check_depth(source)
    api = APIS[plan.source]
    file = SourceFile(source, dataclasses.replace(api, same=(*plan.reexports, *api.same)))
    port = Port(file, plan)
    spelling = Spelling(port)
    walk = Walk(port, spelling)
    port.visit(walk)
    port_imports(port, spelling, walk.imports)
    if plan.scope != "collectives" and plan.source != plan.target:
        port_statements(port)
    port.edits.fit_quotes([(*file.span(text), text.end) for text, _ in file.nodes.of(cst.FormattedString)])
    for start, end in port.comments.spans():
        port.edits.keep(start, end)
    entries = sorted(each for each in port.entries if not port.comments.hides(each))
    if plan.marks:
        left = [each for each in entries if each.kind == "left" and each.rule not in plan.ignored]
        port.comments.mark(left, port.edits)
    return Ported(port.edits.applied().decode(), port.places, entries)


PortFunction = Callable[[str, Plan], Ported]


class BrokenPort(Exception):
    """What was made of a file is no Python."""


def port_python(text: str, plan: Plan, port: PortFunction) -> Ported:
    """Return *text*, the code of a module, ported by *plan*: its code by *port*. Raises SyntaxError, and BrokenPort for a bug of ours."""
    content, framework = text.encode("utf-8", "surrogatepass"), APIS[plan.source].framework
    launched = Launched(text, 0, ())
    if mentions_launcher(content, framework):
        launched = port_launch_lines_in_python(text, plan)
    if not mentions_api(content, framework) and not plan.reexports:
        return _checked(text, launched)
    ported = port(launched.text, plan)
    entries = [dataclasses.replace(entry, line=launched.line_before(entry.line)) for entry in ported.entries]
    return _checked(text, Ported(ported.text, launched.places + ported.places, sorted([*launched.entries, *entries])))


def _checked(before: str, ported: Ported) -> Ported:
    if ported.text != before and is_python(before) and not is_python(ported.text):
        raise BrokenPort("the ported file would not be Python")
    return ported
