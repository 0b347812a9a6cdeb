"""Attributes of tensors that a statement assigns."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from shim.port.plan import Left
from shim.port.rules.literals import flag_of
from shim.port.tensors.arguments import Context
from shim.port.tensors.remarks import report_not_certain, report_unknown
from shim.port.tensors.table import templates_of
from shim.port.tensors.templates import match

_OPPOSITE = re.compile(r"\(not \{tensor\}\.(?P<name>\w+)\)")
_SIMPLE = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)


def targets_of(node: cst.BaseExpression) -> Iterator[cst.Attribute]:
    """Yield the attributes that an assignment to *node* sets."""
    if isinstance(node, cst.Attribute):
        yield node
    elif isinstance(node, (cst.List, cst.Tuple)):
        for element in node.elements:
            yield from targets_of(element.value)


def port_assigned(context: Context, node: cst.Assign, target: cst.Attribute) -> None:
    """Port the assignment of *target*, an attribute, if it is one of a tensor. Raises Left, and changes nothing, where it cannot."""
    port, kind = context.port, context.kinds.of(target.value)
    found = match(context, target)
    if found is None:
        if kind == "tensor":
            report_unknown(port, target, f"{target.attr.value} of a tensor")
        return
    templates = templates_of(found[0], port.plan.target)
    if kind not in ("tensor", None) or f"{{tensor}}.{target.attr.value}" in templates:
        return
    if kind is None:
        report_not_certain(port, target, target)
        return
    opposite = _OPPOSITE.fullmatch(templates[0]) if templates else None
    if opposite is None or len(node.targets) != 1 or node.targets[0].target is not target:
        raise Left(
            "no-equivalent",
            f"tensors of {port.target.framework} have no {target.attr.value} that could be assigned so",
            "Write by hand what the code needs of it.",
        )
    port.edits.replace(*port.file.span(target.attr), opposite["name"])
    flag = flag_of(node.value)
    start, end = port.file.outer_span(node.value)
    if flag is not None:
        port.edits.replace(start, end, str(not flag))
    else:
        bracketed = isinstance(node.value, _SIMPLE) or bool(node.value.lpar)
        port.edits.insert(start, "not " if bracketed else "not (")
        port.edits.insert_after(end, "" if bracketed else ")")
    port.places += 1
