"""Which parameters a call's arguments are for, also those in a dictionary that it unpacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from shim.port.correspondences import Form, Parameter
from shim.port.reading.source_file import SourceFile


def passed(call: cst.Call, form: Form) -> Iterator[tuple[cst.BaseExpression, Parameter]]:
    """Yield what *call* passes to the parameters of *form*, up to an argument that unpacks others."""
    for position, argument in enumerate(call.args):
        if argument.star:
            return
        parameter = form.taking(position, None if argument.keyword is None else argument.keyword.value)
        if parameter is not None:
            yield argument.value, parameter


def unpacked(file: SourceFile, argument: cst.Arg) -> Mapping[str, cst.DictElement] | None:
    """Return what the dictionary in *argument*, ``**value``, gives, by the keyword; None where the source does not show all of it.

    A variable shows it if it is assigned once, a dictionary that names nothing of the API, and used only here.
    """
    if argument.star != "**":
        return None
    value = argument.value
    if not isinstance(value, cst.Name):
        return _elements(value)
    values = file.values_of(value)
    if values is None or len(values) != 1 or file.references(value) != 1:
        return None
    elements = _elements(values[0])
    if elements is None or any(_names_api(file, each.value) for each in elements.values()):
        return None
    return elements


def _elements(value: cst.BaseExpression) -> Mapping[str, cst.DictElement] | None:
    if not isinstance(value, cst.Dict):
        return None
    found: dict[str, cst.DictElement] = {}
    for element in value.elements:
        if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
            return None
        if element.key.prefix or not element.key.raw_value.isidentifier():
            return None
        found[element.key.raw_value] = element
    return found if len(found) == len(value.elements) else None


def _names_api(file: SourceFile, value: cst.BaseExpression) -> bool:
    found: list[str | None] = []

    class Names(cst.CSTVisitor):
        def on_visit(self, node: cst.CSTNode) -> bool:
            found.append(file.imported(node))
            return True

    value.visit(Names())
    return any(found)
