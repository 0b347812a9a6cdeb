"""What is reported of members of tensors, wherever the code uses them."""

from __future__ import annotations

import libcst as cst

from shim.port.rules import Port


def report_not_certain(port: Port, node: cst.CSTNode, member: cst.Attribute) -> None:
    """Report that *node* uses a *member* of what may be a tensor."""
    port.report(
        node,
        "left",
        "may-be-tensor",
        f"{port.file.code(member.value)} may be a tensor, whose {member.attr.value} {port.target.framework} has in another form, or not at all",
        "Annotate it as a tensor, and port again; or change this by hand if it is one.",
    )


def report_unknown(port: Port, node: cst.CSTNode, name: str) -> None:
    """Report that *node* uses *name*, which the tables lack."""
    port.report(
        node,
        "left",
        "tensor-function",
        f"{name} is not in the table of what the frameworks' tensors have in common",
        f"Look up what {port.target.framework} has in its place.",
    )
