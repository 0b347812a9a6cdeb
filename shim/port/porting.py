"""Port one file's text."""

from __future__ import annotations

import dataclasses

import libcst as cst

from shim.port.apis import APIS
from shim.port.form_feeds import with_form_feeds
from shim.port.plan import Plan, Ported
from shim.port.reading import SourceFile
from shim.port.rules import Port, Spelling, Walk, port_imports
from shim.port.tensors import port_statements

__all__ = ["port_source"]


def port_source(source: str, plan: Plan) -> Ported:
    """Return *source*, the text of a Python file, ported by *plan*.

    Raises SyntaxError for text that is no Python 3, and RecursionError for expressions that are nested too deeply to be read.
    """
    try:
        return with_form_feeds(source, plan, _ported)
    except cst.ParserSyntaxError as error:
        raise SyntaxError(error.message, (None, error.raw_line, error.raw_column + 1, None)) from None


def _ported(source: str, plan: Plan) -> Ported:
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
