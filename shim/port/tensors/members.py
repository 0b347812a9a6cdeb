"""Methods and attributes of tensors that have templates, also attributes that a statement assigns, and what is reported of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from shim.port.correspondences.members import templates_of, tensor_templates
from shim.port.correspondences.names import dtype_of, tensor_name_for
from shim.port.plan import Left
from shim.port.reading.expressions import flag_of, is_closed, literal_of
from shim.port.reading.source_file import below
from shim.port.rules.port import Port
from shim.port.rules.templates import matched, write_member


def report_not_certain(port: Port, node: cst.CSTNode, member: cst.Attribute) -> None:
    """Report that *node* uses a *member* of what may be a tensor."""
    port.left(
        node,
        "may-be-tensor",
        f"{port.file.code(member.value)} may be a tensor, whose {member.attr.value} {port.target.framework} has in another form, or not at all",
        "Annotate it as a tensor, and port again; or change this by hand if it is one.",
    )


def report_unknown(port: Port, node: cst.CSTNode, name: str) -> None:
    """Report that *node* uses *name*, which the tables lack."""
    port.left(
        node,
        "tensor-function",
        f"{name} is not in the table of what the frameworks' tensors have in common",
        f"Look up what {port.target.framework} has in its place.",
    )


_OPPOSITE = re.compile(r"\(not \{tensor\}\.(?P<name>\w+)\)")
_ADVICE = {
    **{
        (row, "mindspore"): "MindSpore moves tensors between devices by itself: leave the call out."
        for row in ("cpu", "cuda", "place")
    },
    ("grad", "mindspore"): "mindspore.value_and_grad returns the gradients: call the collective on those.",
}


def match(port: Port, node: cst.BaseExpression) -> tuple[str, list[cst.BaseExpression]] | None:
    """Return the row of the member that *node* is, with the expressions in its places, the tensor first; None where it is none.

    Whether the first expression is a tensor is not looked at.
    """
    for row, template in tensor_templates(port.plan.source):
        parts = matched(port, template, node)
        if parts is not None:
            return row, parts
    return None


def port_member(port: Port, node: cst.BaseExpression, row: str, parts: Sequence[cst.BaseExpression]) -> None:
    """Write *node*, which is of *row*, as the target has it. Raises Left, and changes nothing, where it cannot."""
    templates = templates_of(row, port.plan.target)
    if not templates:
        raise Left(
            "no-equivalent",
            f"tensors of {port.target.framework} have no counterpart of {port.file.code(node)}",
            _ADVICE.get((row, port.target.framework), "Write by hand what the code needs of it."),
        )
    template = templates[0]
    if port.between_frameworks:
        if row == "to_dtype":
            _port_dtype(port, parts[1])
        if row == "copy_":
            template = _copied(port, template, *parts)
        if row == "contiguous" and isinstance(parts[0], (cst.Name, cst.Attribute)):
            template = _contiguous(port, node, template)
    write_member(port, node, template, parts, port.framework.spell)


def _port_dtype(port: Port, value: cst.BaseExpression) -> None:
    """Write a dtype that Paddle calls by a string. Raises Left for what is not certain to be a dtype: ``to`` takes devices and tensors, too."""
    literal = literal_of(port.file.code(value))
    word = dtype_of(literal.strip("'"), port.plan.target) if literal is not None else None
    if word is not None and port.source.framework == "paddle":
        port.edits.replace(*port.file.span(value), port.framework.spell(word))
        return
    name = port.file.imported(value)
    known = name is not None and tensor_name_for(name, port.plan.source, port.plan.target) is not None
    if not known and port.tensors.of(value) != "dtype":
        raise Left(
            "dtype-or-device",
            f"{port.file.code(value)} may be a dtype or a device",
            "Convert to a dtype by the target's function; leave out a move to the rank's own device.",
        )


def _copied(port: Port, template: str, tensor: cst.BaseExpression, other: cst.BaseExpression) -> str:
    """Keep the shape of *tensor*, which Paddle's ``copy_`` gives that of *other*, where the source does not show that they are equal."""
    code = port.file.code(tensor)
    if port.target.framework != "paddle":
        return "{tensor}.copy_({other})" if isinstance(other, cst.BinaryOperation) else template
    shows_shape = port.file.code(other).endswith((f"({code}.shape)", f"_as({code})", f"_like({code})")) or (
        isinstance(other, cst.BinaryOperation) and code in (port.file.code(other.left), port.file.code(other.right))
    )
    if shows_shape or any(isinstance(each, cst.Call) for each in (tensor, *below(tensor))):
        return template
    return "{tensor}.copy_({other}.expand({tensor}.shape))"


def _contiguous(port: Port, node: cst.BaseExpression, template: str) -> str:
    """Keep the meaning of ``contiguous``, which changes the tensor itself in Paddle and makes a copy elsewhere."""
    if port.target.framework == "paddle":
        return "({tensor} if {tensor}.is_contiguous() else {tensor}.clone())"
    if port.source.framework == "paddle":
        port.changed(
            node,
            "contiguous-in-place",
            f"contiguous changes the tensor itself in Paddle, and makes a copy in {port.target.framework}",
            "Assign the result to the variable if the code goes on with it.",
        )
    return template


def targets_of(node: cst.BaseExpression) -> Iterator[cst.Attribute]:
    """Yield the attributes that an assignment to *node* sets."""
    if isinstance(node, cst.Attribute):
        yield node
    elif isinstance(node, (cst.List, cst.Tuple)):
        for element in node.elements:
            yield from targets_of(element.value)


def port_assigned(port: Port, node: cst.Assign, target: cst.Attribute) -> None:
    """Port the assignment of *target*, an attribute, if it is one of a tensor. Raises Left, and changes nothing, where it cannot."""
    kind = port.tensors.of(target.value)
    found = match(port, target)
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
        bracketed = is_closed(node.value)
        port.edits.insert(start, "not " if bracketed else "not (")
        port.edits.insert_after(end, "" if bracketed else ")")
    port.places += 1
