"""Tensors of integers and numbers: sums of small integers are int64 in torch and MindSpore, and stay as small as they are in Paddle; formats of
tensors in strings, which MindSpore refuses, where others format the number that the tensor holds.
"""

from __future__ import annotations

from collections.abc import Hashable

import libcst as cst

from shim.port.correspondences.names import dtype_of, tensor_name_for
from shim.port.correspondences.table import tensor_rows
from shim.port.correspondences.tensors import KEEP_DTYPE
from shim.port.reading.expressions import is_closed, literal_of, passed
from shim.port.rules.port import Port
from shim.port.rules.rewriting import Rewriting
from shim.port.tensors.members import match, report_unknown

_SMALL = ("uint8", "int8", "int16")
_KEEP = """
T clone contiguous copy_ cpu cuda detach expand_as fill_ mT max max_along min t values view_as zero_
"""


def port_sum(rewriting: Rewriting) -> None:
    """Name the dtype of the sum, where the source shows that the tensor's integers are small."""
    tensor, target = rewriting.tensor(), rewriting.port.target.framework
    if tensor is None or rewriting.value("dtype") is not None:
        return
    small = _small(rewriting.port, tensor)
    if small is not None:
        name = "int64" if target == "paddle" else small
        rewriting.added.append(f"dtype={rewriting.port.framework.spell(f'{target}.{name}')}")


def _small(port: Port, node: cst.CSTNode, seen: frozenset[Hashable] = frozenset()) -> str | None:
    """Return the small dtype of the tensor, or of the tensors in the list, *node*; None where it is none, or not shown."""
    if isinstance(node, (cst.List, cst.Tuple)):
        found = {_small(port, element.value, seen) for element in node.elements}
        return found.pop() if len(found) == 1 else None
    if isinstance(node, cst.Call) and isinstance(node.func, (cst.Name, cst.Attribute)):
        return _of_call(port, node, node.func, seen)
    if isinstance(node, cst.Attribute) and (member := match(port, node)) is not None:
        return _small(port, member[1][0], seen) if member[0] in _KEEP.split() else None
    if isinstance(node, (cst.BinaryOperation, cst.IfExp)):
        return _of_both(port, node, seen)
    if isinstance(node, cst.UnaryOperation):
        return _small(port, node.expression, seen)
    if isinstance(node, cst.ListComp):
        return _small(port, node.elt, seen)
    evidence = port.tensors.evidence
    variable = evidence.variable(node)
    if variable is not None and variable not in seen:
        ways = [each for each in evidence.assignments(variable) if each[0] != "added"]
        found = {_small(port, value, seen | {variable}) if how in ("value", "element") else None for how, value in ways}
        if len(found) == 1 and (small := found.pop()) is not None:
            return small
    return _small(port, node.value, seen) if isinstance(node, cst.Subscript) else None


def _of_both(port: Port, node: cst.BinaryOperation | cst.IfExp, seen: frozenset[Hashable]) -> str | None:
    """Return the dtype that both sides have; a number beside a tensor takes its dtype, unless it has a fraction."""
    if isinstance(node, cst.IfExp):
        sides = (node.body, node.orelse)
    elif isinstance(node.operator, cst.Divide) or isinstance(node.left, cst.Float) or isinstance(node.right, cst.Float):
        return None
    else:
        sides = (node.left, node.right)
    found = {_small(port, side, seen) for side in sides if port.tensors.of(side) != "number"}
    return found.pop() if len(found) == 1 else None


def _of_call(port: Port, node: cst.Call, function: cst.Name | cst.Attribute, seen: frozenset[Hashable]) -> str | None:
    name = port.file.imported(function)
    rows = tensor_rows(name or f".{port.file.code(function).rpartition('.')[2]}", port.plan.source)
    found = next(iter(rows), None)
    if found is None or found[0].strip("._") not in KEEP_DTYPE:
        member = match(port, node)
        if member is None:
            return None
        if member[0] == "to_dtype":
            dtype = member[1][1]
            is_others = isinstance(dtype, cst.Attribute) and dtype.attr.value == "dtype"
            return _small(port, cst.ensure_type(dtype, cst.Attribute).value, seen) if is_others else _dtype(port, dtype)
        if member[0] == "type_as":
            return _small(port, member[1][1], seen)
        return _small(port, member[1][0], seen) if member[0] in _KEEP.split() else None
    given = {parameter.role: value for value, parameter in passed(node, found[1])}
    if "dtype" in given:
        return _dtype(port, given["dtype"])
    if found[0].startswith(".") and isinstance(function, cst.Attribute):
        return _small(port, function.value, seen)
    tensor = given.get("tensor", given.get("tensors"))
    return None if tensor is None else _small(port, tensor, seen)


def _dtype(port: Port, node: cst.BaseExpression) -> str | None:
    """Return the small dtype that *node* names."""
    api = port.plan.source
    literal, name = literal_of(port.file.code(node)), port.file.imported(node)
    full = (
        dtype_of(literal.strip("'"), api) if literal is not None else tensor_name_for(name, api, api) if name else None
    )
    word = (full or "").rpartition(".")[2]
    return word if word in _SMALL else None


def _report_text(port: Port, value: cst.BaseExpression) -> None:
    """Report *value* if it is a dtype of which the program makes a text."""
    if port.between_frameworks and port.tensors.of(value) == "dtype":
        why = f"the text of {port.file.code(value)} reads differently in {port.target.framework}"
        port.changed(value, "text-of-dtype", why, "Compare dtypes, not their texts.")


def port_texts(port: Port, call: cst.Call) -> None:
    """Port what *call* makes texts of, if it is ``str``, ``repr`` or ``format``: MindSpore formats numbers, and no tensors."""
    function = call.func
    word = function.attr if isinstance(function, cst.Attribute) else function
    name = word.value if isinstance(word, cst.Name) else ""
    if name not in ("str", "repr", "format"):
        return
    values = [argument.value for argument in call.args]
    for value in values:
        _report_text(port, value)
    if name != "format" or port.target.framework != "mindspore" or port.source.framework == "mindspore":
        return
    if isinstance(function, cst.Attribute):
        formatted = values if ":" in port.file.code(function.value) else []
    else:
        formatted = values[:1] if len(values) == 2 else []
    for value in formatted:
        if port.tensors.of(value) == "tensor":
            _take_number(port, value)


def _take_number(port: Port, value: cst.BaseExpression) -> None:
    start, end = port.file.outer_span(value)
    port.edits.insert(start, "" if is_closed(value) else "(")
    port.edits.insert_after(end, ".item()" if is_closed(value) else ").item()")
    port.places += 1


def port_format(port: Port, node: cst.FormattedStringExpression) -> None:
    """Format the number in a tensor for which *node* has a format; a tensor with a format holds a single one."""
    value = node.expression
    _report_text(port, value)
    if port.target.framework != "mindspore" or port.source.framework == "mindspore":
        return
    if not node.format_spec or node.conversion is not None or port.tensors.of(value) != "tensor":
        return
    if node.equal is not None:
        report_unknown(port, value, f"a format with = of {port.file.code(value)}, a tensor,")
        return
    _take_number(port, value)
