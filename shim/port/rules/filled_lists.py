"""Lists that a call fills in one framework and appends to in another: Paddle appends to an empty list of tensors, and to any list of objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import libcst as cst

from shim.port.correspondences import forms_of
from shim.port.rules.left import Left
from shim.port.rules.port import Port

__all__ = ["before_call"]


def before_call(
    port: Port, row: str, values: Mapping[str, cst.BaseExpression], spell: Callable[[str], str]
) -> str | None:
    """Return a statement to write before a call of *row*, so that its list has on the target what the call needs; None where it needs nothing.

    *values* are the call's arguments by role. Raises Left where the source does not show what the list has.
    """
    from_paddle, to_paddle = port.source.framework == "paddle", port.target.framework == "paddle"
    name = {"all_gather_object": "objects", "all_gather": "outputs"}.get(row)
    given = values.get(name or "")
    if given is None or from_paddle == to_paddle:
        return None
    if to_paddle:
        return (
            f"{port.file.code(given)}.clear()"
            if row == "all_gather_object" and isinstance(given, (cst.Name, cst.Attribute))
            else None
        )
    empty = True if _is_cleared(port, given) else _is_empty(port, given)
    if row == "all_gather" and not empty:
        if empty is None and isinstance(given, cst.Name):
            port.report(
                given,
                "changed",
                "list-may-be-empty",
                f"Paddle appends to {port.file.code(given)} if it is empty, and {port.target.framework} fills it",
                "Have it hold a tensor for each rank before the call.",
            )
        return None
    if not empty:
        raise Left(
            "list-may-be-empty",
            f"Paddle appends to {port.file.code(given)}, {port.target.framework} fills it, and the source does not show what it holds",
            "Have it hold a place for each rank before the call.",
        )
    return _extended(port, row, given, values, spell)


def _extended(
    port: Port,
    row: str,
    given: cst.BaseExpression,
    values: Mapping[str, cst.BaseExpression],
    spell: Callable[[str], str],
) -> str:
    group = port.file.code(values["group"]) if "group" in values and port.file.imported(values["group"]) is None else ""
    size = f"{spell(forms_of('size', port.plan.target)[0].name)}({group})"
    name = port.file.code(given)
    if row == "all_gather_object":
        return f"{name}.extend([None] * {size})"
    imports = port.file.top_level_imports
    framework = next((each.local for each in imports if each.name == port.source.framework), None)
    tensor = values.get("input")
    if framework is None or not isinstance(tensor, (cst.Name, cst.Attribute)):
        raise Left(
            "empty-list",
            f"Paddle appends to {name}, and {port.target.framework} fills it",
            "Have it hold a tensor for each rank before the call.",
        )
    return f"{name}.extend({framework}.empty_like({port.file.code(tensor)}) for _ in range({size}))"


def _is_empty(port: Port, value: cst.BaseExpression) -> bool | None:
    """Tell whether a list is empty when it is made, None where the source does not show that."""
    if isinstance(value, cst.List):
        return not value.elements
    if isinstance(value, cst.Name):
        answers = {_is_empty(port, each) for each in port.file.values_of(value) or () if not isinstance(each, cst.Name)}
        return answers.pop() if len(answers) == 1 else None
    return False if isinstance(value, (cst.ListComp, cst.BinaryOperation)) else None


def _is_cleared(port: Port, value: cst.BaseExpression) -> bool:
    """Tell whether the statement before the call is ``value.clear()``."""
    before = port.before.get(port.statement) if port.statement is not None else None
    if not isinstance(before, cst.SimpleStatementLine) or not isinstance(before.body[-1], cst.Expr):
        return False
    return port.file.code(before.body[-1].value) == f"{port.file.code(value)}.clear()"
