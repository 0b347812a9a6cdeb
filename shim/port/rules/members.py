"""What a group tells of itself, which is a method here, a property there, and a function elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from shim.port.correspondences.members import member_for, member_of
from shim.port.plan import Left
from shim.port.rules.port import Port
from shim.port.rules.templates import write_template

_WORLD = "paddle.distributed.get_group(0)"
_SIMPLE = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer)  # a number has changed places with the group


def member_row(port: Port, node: cst.Attribute, call: cst.Call | None) -> str | None:
    """Return the row of the member *node* of a group, which *call* calls; None where the API's groups have none such."""
    name = node.attr.value
    if call is None:
        return member_of(f"{{group}}.{name}", port.plan.source)
    for arguments in ("()", "({rank})"):
        row = member_of(f"{{group}}.{name}{arguments}", port.plan.source)
        if row is not None and len(call.args) == arguments.count("{"):
            return row
    return None


def port_member(
    port: Port, node: cst.CSTNode, row: str, parts: Sequence[cst.BaseExpression], spell: Callable[[str], str]
) -> None:
    """Write *node* as the target has it. *parts* are the expressions of the group, if it is given, and of the rank, in the order of the source."""
    template = member_for(row, port.plan.target)
    if template is None:
        raise Left(
            "no-equivalent",
            f"groups of {port.target.framework} do not tell this",
            "Keep it in a variable when the group is made.",
        )
    function, _, rest = template.partition("(")
    if not template.startswith("{group}"):
        template = f"{spell(function)}({rest}"
    elif port.file.code(parts[0]) == "None":
        template = template.replace("{group}", spell(_WORLD))
        write_template(port, node, template, parts[1:])
        return
    elif not isinstance(parts[0], _SIMPLE) and not parts[0].lpar:
        template = template.replace("{group}", "({group})")
    write_template(port, node, template, parts)


def exchange(port: Port, parts: Sequence[cst.BaseExpression]) -> bool:
    """Have the group, the second of two *parts*, stand before the rank, if both are so simple that this changes nothing else. Returns whether it does."""
    simple = all(isinstance(part, (cst.Name, cst.Integer)) and port.file.imported(part) is None for part in parts)
    if len(parts) != 2 or not simple or port.file.code(parts[1]) == "None":
        return False
    for part, other in (parts, reversed(parts)):
        port.edits.replace(*port.file.outer_span(part), port.file.code(other))
    return True
