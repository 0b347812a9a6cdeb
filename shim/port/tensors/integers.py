"""Sums of small integers: they are int64 in torch and MindSpore, and stay as small as they are in Paddle."""

from __future__ import annotations

from collections.abc import Hashable

import libcst as cst

from shim.port.reading import passed
from shim.port.rules.literals import literal_of
from shim.port.tensors.arguments import Context, Rewriting
from shim.port.tensors.names import dtype_of, name_of
from shim.port.tensors.table import method_row, row_of
from shim.port.tensors.templates import match

_SMALL = ("uint8", "int8", "int16")
_KEEP = """
T clone contiguous cpu cuda detach flatten mT max max_along min squeeze unsqueeze values
"""
_CHANGE = (".mean", ".sum", "arange")


def port_sum(rewriting: Rewriting) -> None:
    """Name the dtype of the sum, where the source shows that the tensor's integers are small."""
    tensor, target = rewriting.tensor(), rewriting.context.port.target.framework
    if tensor is None or rewriting.value("dtype") is not None:
        return
    small = _small(rewriting.context, tensor)
    if small is not None:
        name = "int64" if target == "paddle" else small
        rewriting.added.append(f"dtype={rewriting.context.imports.spell(f'{target}.{name}')}")


def _small(context: Context, node: cst.CSTNode, seen: frozenset[Hashable] = frozenset()) -> str | None:
    """Return the small dtype of the tensor, or of the tensors in the list, *node*; None where it is none, or not shown."""
    if isinstance(node, (cst.List, cst.Tuple)):
        found = {_small(context, element.value, seen) for element in node.elements}
        return found.pop() if len(found) == 1 else None
    if isinstance(node, cst.Call) and isinstance(node.func, (cst.Name, cst.Attribute)):
        return _of_call(context, node, node.func, seen)
    if isinstance(node, cst.Attribute) and (member := match(context, node)) is not None:
        return _small(context, member[1][0], seen) if member[0] in _KEEP.split() else None
    evidence = context.kinds.evidence
    variable = evidence.variable(node)
    if variable is not None and variable not in seen:
        ways = [each for each in evidence.assignments(variable) if each[0] != "added"]
        found = {
            _small(context, value, seen | {variable}) if how in ("value", "element") else None for how, value in ways
        }
        if len(found) == 1 and (small := found.pop()) is not None:
            return small
    return _small(context, node.value, seen) if isinstance(node, cst.Subscript) else None


def _of_call(
    context: Context, node: cst.Call, function: cst.Name | cst.Attribute, seen: frozenset[Hashable]
) -> str | None:
    port = context.port
    name = port.file.imported(function)
    found = row_of(name, port.plan.source) if name is not None else None
    if found is None and isinstance(function, cst.Attribute):
        found = method_row(function.attr.value, port.plan.source)
    if found is None or found[0] in _CHANGE:
        member = match(context, node)
        if member is None:
            return None
        if member[0] == "to_dtype":
            return _dtype(context, member[1][1])
        return _small(context, member[1][0], seen) if member[0] in _KEEP.split() else None
    given = {parameter.role: value for value, parameter in passed(node, found[1])}
    if "dtype" in given:
        return _dtype(context, given["dtype"])
    if found[0].startswith(".") and isinstance(function, cst.Attribute):
        return _small(context, function.value, seen)
    tensor = given.get("tensor", given.get("tensors"))
    return None if tensor is None else _small(context, tensor, seen)


def _dtype(context: Context, node: cst.BaseExpression) -> str | None:
    """Return the small dtype that *node* names."""
    port, api = context.port, context.port.plan.source
    literal, name = literal_of(port.file.code(node)), port.file.imported(node)
    full = dtype_of(literal.strip("'"), api) if literal is not None else name_of(name, api, api) if name else None
    word = (full or "").rpartition(".")[2]
    return word if word in _SMALL else None
