"""Methods and attributes of tensors, by their templates."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from shim.port.plan import Left
from shim.port.rules.literals import literal_of
from shim.port.rules.templates import write_template
from shim.port.tensors.arguments import Context
from shim.port.tensors.members import MEMBERS
from shim.port.tensors.names import dtype_of, name_of
from shim.port.tensors.table import templates_of

_FUNCTION = re.compile(r"(?P<name>[\w.]+)\(\{tensor\}\)")
_METHOD = re.compile(r"\{tensor\}\.(?P<name>\w+)\((?P<arguments>[^)]*)\)(?P<after>\.values)?")
_ADVICE = {
    **{
        (row, "mindspore"): "MindSpore moves tensors between devices by itself: leave the call out."
        for row in ("cpu", "cuda", "place")
    },
    ("grad", "mindspore"): "mindspore.value_and_grad returns the gradients: call the collective on those.",
}
_KEYWORDS = {"axis": ("axis", "dim"), "dtype": ("dtype",), "other": ("other", "src")}


def match(context: Context, node: cst.BaseExpression) -> tuple[str, list[cst.BaseExpression]] | None:
    """Return the row of the member that *node* is, with the expressions in its places, the tensor first; None where it is none.

    Whether the first expression is a tensor is not looked at.
    """
    for row in MEMBERS:
        for template in templates_of(row, context.port.plan.source):
            parts = _matched(context, template, node)
            if parts is not None:
                return row, parts
    return None


def port_member(context: Context, node: cst.BaseExpression, row: str, parts: Sequence[cst.BaseExpression]) -> None:
    """Write *node*, which is of *row*, as the target has it. Raises Left, and changes nothing, where it cannot."""
    port = context.port
    templates = templates_of(row, port.plan.target)
    if not templates:
        raise Left(
            "no-equivalent",
            f"tensors of {port.target.framework} have no counterpart of {port.file.code(node)}",
            _ADVICE.get((row, port.target.framework), "Write by hand what the code needs of it."),
        )
    template = templates[0]
    if port.source.framework != port.target.framework:
        if row == "to_dtype":
            _port_dtype(context, parts[1])
        if row == "contiguous" and isinstance(parts[0], (cst.Name, cst.Attribute)):
            template = _contiguous(context, node, template)
    if (match := _FUNCTION.fullmatch(template)) is not None:
        template = f"{context.imports.spell(match['name'])}({{tensor}})"
    elif not isinstance(parts[0], (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) and not parts[0].lpar:
        template = template.replace("{tensor}", "({tensor})", 1)
    if template.count("{tensor}") > 1:
        port.edits.replace(*port.file.span(node), template.replace("{tensor}", port.file.code(parts[0])))
        context.done.add(parts[0])
        port.places += 1
    else:
        write_template(port, node, template, parts)


def _matched(context: Context, template: str, node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    if "(" not in template:
        if isinstance(node, cst.Attribute) and f"{{tensor}}.{node.attr.value}" == template:
            return [node.value]
        return None
    if (function := _FUNCTION.fullmatch(template)) is not None:
        if (
            isinstance(node, cst.Call)
            and len(node.args) == 1
            and not node.args[0].star
            and context.port.file.imported(node.func) == function["name"]
        ):
            return [node.args[0].value]
        return None
    method = _METHOD.fullmatch(template)
    if method is None:
        return None
    if method["after"]:
        if not (isinstance(node, cst.Attribute) and node.attr.value == "values"):
            return None
        node = node.value
    if not (
        isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == method["name"]
    ):
        return None
    places = [place.partition("=")[2] or place for place in method["arguments"].split(", ") if place]
    if len(places) != len(node.args):
        return None
    for place, argument in zip(places, node.args, strict=True):
        if not place.startswith("{"):
            if literal_of(context.port.file.code(argument.value)) != place:
                return None
        elif argument.star or (
            argument.keyword is not None and argument.keyword.value not in _KEYWORDS[place.strip("{}")]
        ):
            return None
    return [
        node.func.value,
        *(each.value for each, place in zip(node.args, places, strict=True) if place.startswith("{")),
    ]


def _port_dtype(context: Context, value: cst.BaseExpression) -> None:
    """Write a dtype that Paddle calls by a string. Raises Left for what is not certain to be a dtype: ``to`` takes devices and tensors, too."""
    port = context.port
    literal = literal_of(port.file.code(value))
    word = dtype_of(literal.strip("'"), port.plan.target) if literal is not None else None
    if word is not None and port.source.framework == "paddle":
        port.edits.replace(*port.file.span(value), context.imports.spell(word))
        return
    name = port.file.imported(value)
    known = name is not None and name_of(name, port.plan.source, port.plan.target) is not None
    if not known and context.kinds.of(value) != "dtype":
        raise Left(
            "dtype-or-device",
            f"{port.file.code(value)} may be a dtype or a device",
            "Convert to a dtype by the target's function; leave out a move to the rank's own device.",
        )


def _contiguous(context: Context, node: cst.BaseExpression, template: str) -> str:
    """Keep the meaning of ``contiguous``, which changes the tensor itself in Paddle and makes a copy elsewhere."""
    port = context.port
    if port.target.framework == "paddle":
        return "({tensor} if {tensor}.is_contiguous() else {tensor}.clone())"
    if port.source.framework == "paddle":
        port.report(
            node,
            "changed",
            "contiguous-in-place",
            f"contiguous changes the tensor itself in Paddle, and makes a copy in {port.target.framework}",
            "Assign the result to the variable if the code goes on with it.",
        )
    return template
