"""Groups: given by a name of the API or by a string, as MindSpore's are; what they tell of themselves, a method here and a function there; and what may be one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import libcst as cst

from shim.port.correspondences.members import group_templates, member_for
from shim.port.plan import Left
from shim.port.reading.expressions import literal_of
from shim.port.reading.groups import WORLDS
from shim.port.rules.port import Port
from shim.port.rules.templates import matched, write_member, write_template

_WORLD_STRINGS = frozenset(("'hccl_world_group'", "'mccl_world_group'", "'nccl_world_group'"))


def is_world(port: Port, value: cst.BaseExpression) -> bool:
    """Tell whether *value*, a group, is the source's name of the world."""
    return port.file.imported(value) in WORLDS or (
        _has_strings(port) and literal_of(port.file.code(value)) in _WORLD_STRINGS
    )


def is_world_at_import(port: Port, node: cst.Param) -> bool:
    """Tell whether the default of *node* is the world, by a name that means nothing yet when the file is imported, and no group's member is asked of it."""
    if not port.between_frameworks or node.default is None or port.file.imported(node.default) not in WORLDS:
        return False
    place = port.file.variable(node.name)
    members = (each for each, _ in port.file.nodes.of(cst.Attribute) if isinstance(each.value, cst.Name))
    return not any(port.file.variable(cst.ensure_type(each.value, cst.Name)) == place for each in members)


def check_group(port: Port, value: cst.BaseExpression) -> None:
    """Raise Left if *value*, a group, is a string that the program chose, and the target's groups are objects."""
    if not _has_strings(port):
        return
    values = port.file.values_of(value) if isinstance(value, cst.Name) else [value]
    if values and all(isinstance(each, (cst.SimpleString, cst.FormattedString)) for each in values):
        raise Left(
            "group-by-name",
            f"{port.file.code(value)} is the name of a group, and groups of {port.target.framework} are objects",
            "Pass the group that new_group returns.",
        )


def _has_strings(port: Port) -> bool:
    return port.source.framework == "mindspore" != port.target.framework


_WORLD = "paddle.distributed.get_group(0)"


def member_row(port: Port, node: cst.Attribute, call: cst.Call | None) -> str | None:
    """Return the row of the member *node* of a group, which *call* calls; None where the API's groups have none such."""
    for row, template in group_templates(port.plan.source):
        if template.startswith("{group}.") and matched(port, template, node if call is None else call) is not None:
            return row
    return None


def port_member(
    port: Port, node: cst.CSTNode, row: str, parts: Sequence[cst.BaseExpression], spell: Callable[[str], str]
) -> None:
    """Write *node* as the target has it. *parts* are the expressions of the group, if it is given, and of the rank, in the order of the source."""
    template = member_for(row, port.plan.target)
    if template is None:
        why = f"groups of {port.target.framework} do not tell this"
        raise Left("no-equivalent", why, "Keep it in a variable when the group is made.")
    if template.startswith("{group}") and port.file.code(parts[0]) == "None":
        write_template(port, node, template.replace("{group}", spell(_WORLD)), parts[1:])
    else:
        write_member(port, node, template, parts, spell)


def exchange(port: Port, parts: Sequence[cst.BaseExpression]) -> bool:
    """Have the group, the second of two *parts*, stand before the rank, if both are so simple that this changes nothing else. Returns whether it does."""
    simple = all(isinstance(part, (cst.Name, cst.Integer)) and port.file.imported(part) is None for part in parts)
    if len(parts) != 2 or not simple or port.file.code(parts[1]) == "None":
        return False
    for part, other in (parts, reversed(parts)):
        port.edits.replace(*port.file.outer_span(part), port.file.code(other))
    return True


_NAME = re.compile(r"(?:.*_)?(?:group|pg)", re.IGNORECASE)


def report_possible_group(port: Port, node: cst.Attribute, call: cst.Call | None) -> None:
    """Report *node*, the function of *call* or an attribute that is read, if it has the name of a group's member and is of what is named like one."""
    is_certain = node.value in port.groups
    if not port.between_frameworks or is_certain or member_row(port, node, call) is None:
        return
    if _NAME.fullmatch(_last_name(node.value)):
        code, target = port.file.code(node.value), port.target.framework
        why = f"{code} is named like a group, and groups of {target} have no {node.attr.value}"
        advice = "If it is one, ask with the target's functions of groups, such as get_world_size(group)."
        port.left(node, "may-be-group", why, advice)


def _last_name(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Call):
        return _last_name(node.func)
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""
