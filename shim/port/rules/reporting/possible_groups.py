"""Members of what is named like a group and is not certain to be one, as what a function of another file returns."""

from __future__ import annotations

import re

import libcst as cst

from shim.port.rules.members import member_row
from shim.port.rules.port import Port

_NAME = re.compile(r"(?:.*_)?(?:group|pg)", re.IGNORECASE)


def report_possible_group(port: Port, node: cst.Attribute, call: cst.Call | None) -> None:
    """Report *node*, the function of *call* or an attribute that is read, if it has the name of a group's member and is of what is named like one."""
    target = port.target.framework
    if port.source.framework == target or node.value in port.groups or member_row(port, node, call) is None:
        return
    if not _NAME.fullmatch(_last_name(node.value)):
        return
    port.report(
        node,
        "left",
        "may-be-group",
        f"{port.file.code(node.value)} is named like a group, and groups of {target} have no {node.attr.value}",
        "If it is one, ask with the target's functions of groups, such as get_world_size(group).",
    )


def _last_name(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Call):
        return _last_name(node.func)
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""
