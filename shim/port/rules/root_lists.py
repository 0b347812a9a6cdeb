"""Lists that only the root of a call needs: torch refuses them on other ranks, MindSpore wants one on every rank."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from shim.port.correspondences import Form, forms_of
from shim.port.plan import Left
from shim.port.rules.port import Port

_ROLES = {"gather": "outputs", "gather_object": "objects", "scatter": "inputs"}


def is_for_root_only(form: Form, role: str) -> bool:
    """Tell whether the parameter with *role* is a list that only the root needs."""
    return _ROLES.get(form.name.rpartition(".")[2]) == role


def to_wrap(
    port: Port, value: cst.BaseExpression, root: cst.BaseExpression | None, target: Form, spell: Callable[[str], str]
) -> tuple[str, str] | None:
    """Return what to write before and after *value*, so that the target takes it on every rank; None where nothing is needed."""
    if port.source.framework == port.target.framework:
        return None
    if port.target.framework == "mindspore" and target.name.endswith(("gather", "scatter")):
        return None if _always_list(port, value) else _bracketed(value, " or []")
    if port.target.framework == "torch" and not _only_on_root(port, value):
        if root is not None and not isinstance(root, (cst.Name, cst.Integer, cst.Attribute, cst.BinaryOperation)):
            raise Left(
                "root-list",
                "the list is for the root alone, and the source does not name the root simply",
                "Keep the root in a variable, and port again.",
            )
        rank = f"{spell(forms_of('rank', port.plan.target)[0].name)}()"
        return _bracketed(value, f" if {rank} == {'0' if root is None else port.file.code(root)} else None")
    return None


def _bracketed(value: cst.BaseExpression, after: str) -> tuple[str, str]:
    simple = isinstance(value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.List, cst.ListComp)) or bool(
        value.lpar
    )
    return ("", after) if simple else ("(", f"){after}")


def _always_list(port: Port, value: cst.BaseExpression) -> bool:
    if isinstance(value, (cst.List, cst.ListComp)):
        return True
    if isinstance(value, cst.IfExp):
        return _always_list(port, value.body) and _always_list(port, value.orelse)
    if isinstance(value, cst.BooleanOperation) and isinstance(value.operator, cst.Or):
        return _always_list(port, value.right)
    return _all_values(port, value, _always_list)


def _only_on_root(port: Port, value: cst.BaseExpression) -> bool:
    """Tell whether *value* is a choice between a list and nothing, which the author made by the rank."""
    if isinstance(value, cst.IfExp):
        return _is_nothing(value.body) or _is_nothing(value.orelse)
    return _is_nothing(value) or _all_values(port, value, _only_on_root)


def _is_nothing(value: cst.BaseExpression) -> bool:
    return (isinstance(value, cst.Name) and value.value == "None") or (
        isinstance(value, cst.List) and not value.elements
    )


def _all_values(port: Port, value: cst.BaseExpression, test: Callable[[Port, cst.BaseExpression], bool]) -> bool:
    values = port.file.values_of(value) if isinstance(value, cst.Name) else None
    return values is not None and all(not isinstance(each, cst.Name) and test(port, each) for each in values)
