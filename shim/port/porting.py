"""Port one file's text."""

from __future__ import annotations

import ast
import dataclasses
import warnings

import libcst as cst

from shim.port.apis import APIS
from shim.port.form_feeds import with_form_feeds
from shim.port.plan import Plan, Ported
from shim.port.reading import SourceFile
from shim.port.rules import Port, Spelling, Walk, port_imports
from shim.port.tensors import port_statements

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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the user's own text
            level: list[ast.AST] = [ast.parse(source)]
    except (SyntaxError, ValueError):
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
    file.module.visit(walk)
    port_imports(port, spelling, walk.imports)
    if plan.scope == "statements" and plan.source != plan.target:
        port_statements(port)
    return Ported(port.edits.applied().decode(), port.places, sorted(port.entries))
