"""Operators in place, which change the tensor in torch alone."""

from __future__ import annotations

import libcst as cst

from shim.port.tensors.arguments import Context
from shim.port.tensors.inference.evidence import has_plain_index
from shim.port.tensors.table import templates_of
from shim.port.tensors.templates import match
from shim.port.tensors.views import report_unreached

_SIMPLE = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float)
_JOINED = ("list", "mapping", "shape", "tensors", "text")  # values that are added to others of their kind alone


def port_in_place(context: Context, node: cst.AugAssign) -> None:
    """Keep ``+=`` and its like in place, or not: torch changes the tensor, and Paddle and MindSpore make a new one."""
    port, target = context.port, node.target
    ours, theirs = port.source.framework == "torch", port.target.framework == "torch"
    if ours == theirs or _is_the_same(context, target):
        return
    kind = context.kinds.of(target)
    if (
        kind == "tensor"
        and (found := match(context, target)) is not None
        and not templates_of(found[0], port.plan.target)
    ):
        return  # it is reported where it stands
    if kind == "tensor" and ours and report_unreached(context, node, target):
        return
    if kind == "tensor" and _is_path(target):
        _write(context, node, target, "{0}.copy_({0} {1} {2})" if ours else "{0} = {0} {1} {2}")
    else:
        report_in_place(context, node)


def report_in_place(context: Context, node: cst.AugAssign) -> None:
    """Report the operator, unless the source shows that it changes no tensor."""
    port, target = context.port, node.target
    if context.kinds.of(target) in ("tensor", None) and context.kinds.of(node.value) not in _JOINED:
        code, sign = port.file.code(target), port.file.code(node.operator).strip()
        port.report(
            node,
            "left",
            "may-be-tensor",
            f"{code} may be a tensor, which {sign} changes in torch, and which stays as it was in Paddle and MindSpore",
            "Annotate it as a tensor, and port again; or write by hand what is meant if it is one.",
        )


def _is_the_same(context: Context, target: cst.BaseExpression) -> bool:
    """Tell whether all frameworks change the tensor itself: a part of it or, in Paddle, a gradient, which keeps its memory."""
    if isinstance(target, cst.Subscript):
        return context.kinds.of(target.value) == "tensor"
    return (
        context.port.source.framework == "paddle" and isinstance(target, cst.Attribute) and target.attr.value == "grad"
    )


def _is_path(node: cst.BaseExpression) -> bool:
    """Tell whether *node* may be written twice."""
    if isinstance(node, cst.Attribute) or (isinstance(node, cst.Subscript) and has_plain_index(node)):
        return _is_path(node.value)
    return isinstance(node, cst.Name)


def _write(context: Context, node: cst.AugAssign, target: cst.BaseAssignTargetExpression, template: str) -> None:
    """Write the statement by the *template*, with the target, the operator and the value in its places."""
    port = context.port
    code, sign = port.file.code(target), port.file.code(node.operator).strip().removesuffix("=")
    before, after = template.format(code, sign, "|").split("|")
    if not isinstance(node.value, _SIMPLE) and not node.value.lpar:
        before, after = before + "(", ")" + after
    port.edits.replace(port.file.span(target).start, port.file.outer_span(node.value).start, before)
    port.edits.insert_after(port.file.outer_span(node.value).end, after)
    context.done |= _all_of(target)
    port.places += 1


def _all_of(node: cst.CSTNode) -> set[cst.CSTNode]:
    """Return *node* and all that is in it."""
    return {node}.union(*(_all_of(each) for each in node.children))
