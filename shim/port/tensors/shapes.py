"""Shapes: they are lists in Paddle and tuples elsewhere, and a 0 in the shape for ``reshape`` means the dimension's own length in Paddle alone."""

from __future__ import annotations

from typing import Literal

import libcst as cst

from shim.port.plan import Left
from shim.port.reading.expressions import is_closed
from shim.port.rules.port import Port
from shim.port.rules.rewriting import Rewriting

_Sequence = Literal["shape", "list", "tuple"] | None  # a tensor's shape as it is, or what a display or a call makes


def port_joined_shapes(port: Port, *operands: cst.BaseExpression) -> None:
    """Have a shape be the kind of sequence that it is joined to or compared with."""
    if not _differ(port) or port.plan.target == "paddle_3":  # whose shapes can be joined to both
        return
    wanted = "list" if port.source.framework == "paddle" else "tuple"
    for one, other in (operands, operands[::-1]):
        if _sequence(port, one) != "shape":
            continue
        sequence = _sequence(port, other)
        if sequence == wanted and is_closed(one):
            start, end = port.file.outer_span(one)
            port.edits.insert(start, f"{wanted}(")
            port.edits.insert_after(end, ")")
        elif sequence is None and port.tensors.of(other) in (None, "list", "shape"):
            port.changed(
                other,
                "shape-type",
                f"{port.file.code(one)} is a list in Paddle 2 and a tuple elsewhere, and {port.file.code(other)} may be either",
                "Make a list or a tuple of both.",
            )


def report_changed_shape(port: Port, target: cst.BaseExpression, value: cst.BaseExpression | None = None) -> None:
    """Report a shape of Paddle, a list, to whose elements something is assigned, or to which the list *value* is added."""
    if not _differ(port) or port.source.framework != "paddle":
        return
    if isinstance(target, cst.Subscript) and value is None:
        target = target.value
    elif value is None or _sequence(port, value) != "list":
        return
    if _sequence(port, target) == "shape":
        port.left(
            target,
            "shape-type",
            f"{port.file.code(target)} is a shape, which is a tuple in {port.target.framework} and cannot be changed",
            "Make a list of it where it is assigned.",
        )


def _differ(port: Port) -> bool:
    return port.to_or_from("paddle")


def _sequence(port: Port, node: cst.CSTNode, depth: int = 0) -> _Sequence:
    """Return what sequence *node* is; None where the source does not show that."""
    if isinstance(node, (cst.List, cst.ListComp)):
        return "list"
    if isinstance(node, cst.Tuple):
        return "tuple"
    if isinstance(node, cst.Call):
        name = port.file.code(node.func)
        if name in ("list", "tuple"):
            return "list" if name == "list" else "tuple"
        return "shape" if isinstance(node.func, cst.Attribute) and port.tensors.of(node) == "shape" else None
    if isinstance(node, cst.Subscript) and any(isinstance(each.slice, cst.Slice) for each in node.slice):
        return _sequence(port, node.value, depth)
    if isinstance(node, cst.Attribute) and node.attr.value == "shape":
        return "shape" if port.tensors.of(node.value) in ("tensor", None) else None
    variable = port.tensors.evidence.variable(node)
    if variable is None or depth > 3:  # variables that are assigned each other
        return None
    assignments = [each for each in port.tensors.evidence.assignments(variable) if each[0] != "added"]
    found = {_sequence(port, value, depth + 1) if how == "value" else None for how, value in assignments}
    return found.pop() if len(found) == 1 else None


def port_zeros(rewriting: Rewriting) -> None:
    """Write the length of the dimension in place of a 0 in the shape. Raises Left where that cannot be, or where 0 is a length."""
    port = rewriting.port
    values = [each.value for each in rewriting.given if each.parameter.role == "shape"]
    has_zeros = [_has_zero(port, value) for value in values]
    if port.source.framework == "paddle" and has_zeros == [None]:
        rewriting.report(
            values[0],
            "zero-in-shape",
            f"{port.file.code(values[0])} may have a 0, which is the dimension's own length in Paddle, and a length of 0 elsewhere",
            "Write the length in its place.",
        )
    if True not in has_zeros:
        return
    tensor, shape = rewriting.tensor(), values[0]
    elements = shape.elements if isinstance(shape, (cst.List, cst.Tuple)) else ()
    starred = any(isinstance(each, cst.StarredElement) for each in elements)
    if (
        port.source.framework != "paddle"
        or not elements
        or starred
        or not isinstance(tensor, (cst.Name, cst.Attribute))
    ):
        raise Left(
            "zero-in-shape",
            "a 0 in the shape is the dimension's own length in Paddle, and a length of 0 elsewhere",
            "Write the length in its place, or make an empty tensor.",
        )
    for position, element in enumerate(elements):
        if _has_zero(port, element.value):
            rewriting.replace(element.value, f"{port.file.code(tensor)}.shape[{position}]")


def _has_zero(port: Port, node: cst.CSTNode, depth: int = 0) -> bool | None:
    """Tell whether the shape, or the number in a shape, *node* has a 0 that is written out; None where the source does not show it."""
    if isinstance(node, cst.Integer):
        return node.value == "0"
    if isinstance(node, (cst.List, cst.Tuple)):
        return any(_has_zero(port, each.value) for each in node.elements)
    kind = port.tensors.of(node)
    if kind in ("shape", "number"):
        return False
    variable = port.tensors.evidence.variable(node)
    assignments = port.tensors.evidence.assignments(variable) if variable is not None and depth < 3 else ()
    found = {_has_zero(port, value, depth + 1) if how == "value" else None for how, value in assignments}
    return True if True in found else (False if found == {False} else None)
