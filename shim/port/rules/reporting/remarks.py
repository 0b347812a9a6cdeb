"""What the author has to know of a ported call, beside its arguments: what it returned or told, and the target's function does not."""

from __future__ import annotations

import libcst as cst

from shim.port.correspondences import Form
from shim.port.rules.port import Port


def remark(port: Port, node: cst.Call, row: str, source: Form, target: Form) -> None:
    """Report what is different about the call *node* of *source*'s function, which becomes one of *target*'s."""
    if port.source.framework == port.target.framework:
        return
    if row == "backend_of":
        port.report(
            node,
            "changed",
            "backend-name",
            f"{target.name} returns a backend's name of {port.target.framework}",
            "Check what the code compares it with.",
        )
    elif row == "receive" and port.source.framework == "torch" and not _is_statement(port, node):
        port.report(
            node,
            "changed",
            "result-used",
            f"{source.name} returns the rank that sent, and {target.name} does not",
            "Use the rank that the call names.",
        )
    elif "paddle" in (port.source.framework, port.target.framework) and _is_synchronous(node, source):
        if not _is_statement(port, node):
            port.report(
                node,
                "changed",
                "result-used",
                "a call that does not go on in the background returns a task in Paddle, and None elsewhere",
                "Ask for it to go on in the background, or leave its result alone.",
            )
    elif source.name == "torch.distributed.monitored_barrier" and port.plan.onto == "native":
        port.report(
            node,
            "changed",
            "missing-ranks",
            f"{source.name} names the ranks that have not come, and {target.name} does not",
            "Run the program on shim's frontend to find such ranks.",
        )


def _is_synchronous(node: cst.Call, source: Form) -> bool:
    """Tell whether *node* calls a function that can go on in the background, and does not ask for it."""
    flag = source.of_role("background")
    if flag is None or any(argument.star for argument in node.args):
        return False
    by_position = sum(argument.keyword is None for argument in node.args) > source.parameters.index(flag)
    return not by_position and all(
        argument.keyword is None or argument.keyword.value != flag.name for argument in node.args
    )


def _is_statement(port: Port, node: cst.Call) -> bool:
    """Tell whether nothing is done with what *node* returns: it is a statement, or is no call itself, as in ``functools.partial``."""
    statement = port.statement
    if statement is None or node.func not in port.done:
        return True
    return any(isinstance(each, cst.Expr) and each.value is node for each in statement.body)
