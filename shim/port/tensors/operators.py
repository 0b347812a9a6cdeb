"""Operators of tensors and shapes that mean another thing in another framework."""

from __future__ import annotations

import libcst as cst

from shim.port.tensors.arguments import Context

__all__ = ["port_in_place", "port_shapes"]

_SIMPLE = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float)


def port_in_place(context: Context, node: cst.AugAssign) -> None:
    """Keep ``+=`` and its like in place, or not: torch changes the tensor, and Paddle and MindSpore make a new one."""
    port, target = context.port, node.target
    ours, theirs = port.source.framework == "torch", port.target.framework == "torch"
    if ours == theirs or not isinstance(target, (cst.Name, cst.Attribute)) or context.kinds.of(target) != "tensor":
        return
    code, sign = port.file.code(target), port.file.code(node.operator).strip().removesuffix("=")
    start, end = port.file.span(target).start, port.file.outer_span(node.value).start
    before, after = ("", "") if isinstance(node.value, _SIMPLE) or node.value.lpar else ("(", ")")
    port.edits.replace(
        start, end, f"{code}.copy_({code} {sign} {before}" if ours else f"{code} = {code} {sign} {before}"
    )
    port.edits.insert_after(port.file.outer_span(node.value).end, after + (")" if ours else ""))
    context.done.add(target)
    port.places += 1


def port_shapes(context: Context, *operands: cst.BaseExpression) -> None:
    """Have a shape be the kind of sequence that it is joined to or compared with: it is a list in Paddle, and a tuple elsewhere."""
    port = context.port
    display: type[cst.BaseExpression]
    if port.source.framework == "paddle" and port.target.framework != "paddle":
        display, kind = cst.List, "list"
    elif port.source.framework != "paddle" and port.plan.target == "paddle_2":
        display, kind = cst.Tuple, "tuple"
    else:
        return
    for one, other in (operands, operands[::-1]):
        if (
            isinstance(other, display)
            and context.kinds.of(one) == "shape"
            and isinstance(one, (cst.Name, cst.Attribute, cst.Call))
        ):
            start, end = port.file.outer_span(one)
            port.edits.insert(start, f"{kind}(")
            port.edits.insert_after(end, ")")
