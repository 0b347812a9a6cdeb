"""Parts of a tensor in MindSpore: they are views, but ``copy_`` into one that has an offset or strides raises an error, or has no effect."""

from __future__ import annotations

from collections.abc import Hashable

import libcst as cst

from shim.port.rules import Port

_TURNED = ("T", "mT", "permute", "t", "transpose")
_PARTS = ("chunk", "split", "unbind")
_SAME_MEMORY = ("data", "detach", "squeeze", "unsqueeze", "view")
_SAME_OR_COPIED = ("contiguous", "flatten", "reshape")  # they copy what is turned
_SAME_ELEMENTS = ("enumerate", "list", "reversed", "sorted", "tuple", "zip")


def report_copy(port: Port, node: cst.Call) -> bool:
    """Report *node* if it is a ``copy_`` into such a part. Returns whether it is."""
    function = node.func
    if not isinstance(function, cst.Attribute) or function.attr.value != "copy_":
        return False
    return report_unreached(port, node, function.value)


def report_unreached(port: Port, node: cst.CSTNode, target: cst.BaseExpression) -> bool:
    """Report *node*, which writes into *target* by ``copy_``, if that is such a part. Returns whether it is."""
    if port.target.framework != "mindspore" or port.source.framework == "mindspore":
        return False
    if not _is_part(port, target):
        return False
    port.report(
        node,
        "left",
        "views-as-outputs",
        f"{port.file.code(target)} is a part of a tensor, into which MindSpore's copy_ does not write: it raises an error, or has no effect",
        "Write into the tensor itself by an index, as in x[1:] = y.",
    )
    return True


def _is_part(port: Port, node: cst.CSTNode, seen: frozenset[Hashable] = frozenset(), *, turned: bool = True) -> bool:
    """Tell whether the tensor is such a part, or the list has some; one that is only *turned* does not count without it."""
    kinds, evidence = port.tensors, port.tensors.evidence
    if isinstance(node, cst.Call):
        return _is_part_of_call(port, node, seen, turned=turned)
    if isinstance(node, cst.Attribute) and node.attr.value in _TURNED and kinds.of(node.value) == "tensor":
        return turned or _is_part(port, node.value, seen, turned=turned)
    if isinstance(node, cst.Attribute) and node.attr.value in _SAME_MEMORY and kinds.of(node.value) == "tensor":
        return _is_part(port, node.value, seen, turned=turned)
    if isinstance(node, (cst.List, cst.Tuple)):
        return any(_is_part(port, each.value, seen, turned=turned) for each in node.elements)
    if isinstance(node, cst.ListComp):
        return _is_part(port, node.elt, seen, turned=turned)
    if isinstance(node, cst.IfExp):
        return any(_is_part(port, each, seen, turned=turned) for each in (node.body, node.orelse))
    if isinstance(node, cst.Subscript) and kinds.of(node.value) == "tensor" and not _is_whole(node):
        return True
    variable = evidence.variable(node)
    if variable is not None and variable not in seen:
        for how, value in evidence.assignments(variable):
            if how == "element" and kinds.of(value) == "tensor":
                return True
            if how in ("value", "element") and _is_part(port, value, seen | {variable}, turned=turned):
                return True
    return isinstance(node, cst.Subscript) and _is_part(port, node.value, seen, turned=turned)


def _is_part_of_call(port: Port, node: cst.Call, seen: frozenset[Hashable], *, turned: bool) -> bool:
    name = port.file.imported(node.func)
    last = (name or port.file.code(node.func)).rpartition(".")[2]
    arguments = [each.value for each in node.args]
    if isinstance(node.func, cst.Name) and name is None:
        return last in _SAME_ELEMENTS and any(_is_part(port, each, seen, turned=turned) for each in arguments)
    of = arguments[0] if name is not None and arguments else getattr(node.func, "value", None)
    if of is None or last in _PARTS:
        return last in _PARTS
    if last in _TURNED:
        return turned or _is_part(port, of, seen, turned=turned)
    if last in _SAME_MEMORY:
        return _is_part(port, of, seen, turned=turned)
    return last in _SAME_OR_COPIED and _is_part(port, of, seen, turned=False)


def _is_whole(node: cst.Subscript) -> bool:
    """Tell whether the index takes the whole tensor: ``[:]``, ``[0:]``, ``[...]``, ``[None]``."""
    for element in node.slice:
        index = element.slice
        if isinstance(index, cst.Slice):
            if index.upper is not None or index.step is not None:
                return False
            if index.lower is not None and not (isinstance(index.lower, cst.Integer) and index.lower.value == "0"):
                return False
        elif not isinstance(index, cst.Index) or not (
            isinstance(index.value, cst.Ellipsis) or (isinstance(index.value, cst.Name) and index.value.value == "None")
        ):
            return False
    return True
