"""Questions for the rank and the size of the world that a program may ask before it has initialised: Paddle and MindSpore answer, torch raises an error."""

from __future__ import annotations

import libcst as cst

from shim.port.reading.expressions import literal_of
from shim.port.rules.port import Port

_VARIABLES = {"rank": ("RANK", 0), "size": ("WORLD_SIZE", 1)}  # of torch's launchers, and what is read without one


def answer_before_init(port: Port, node: cst.CSTNode, row: str) -> str | None:
    """Return code that reads the answer to *node*, a question of *row*, from the environment, where the program asks it beside the call that initialises.

    None where the target can be asked, or where only the author knows; that is reported.
    """
    known = _VARIABLES.get(row)
    from_torch, to_torch = port.source.framework == "torch", port.target.framework == "torch"
    if known is None or from_torch == to_torch or (isinstance(node, cst.Call) and _names_group(port, node)):
        return None
    if from_torch:
        if port.initialised.is_caught(node) and not port.initialised.is_sure(node):
            what = f"raises an error in torch, which the program catches, and {port.target.framework} answers"
            port.changed(node, "before-init", f"before the program initialises, this {what}", _ADVICE)
        return None
    if port.initialised.is_sure(node):
        return None
    if port.initialised.has_start(node) and (os := port.standard_module("os")) is not None:
        return f'int({os}.environ.get("{known[0]}", {known[1]}))'
    port.asked_early.append(node)
    return None


def report_early_value(port: Port, node: cst.CSTNode, row: str) -> None:
    """Note that the program keeps or passes on the function that answers *row*, and may call it before it initialises."""
    if (
        row in _VARIABLES
        and port.source.framework != "torch" == port.target.framework
        and not port.initialised.is_sure(node)
    ):
        port.asked_early.append(node)


_ADVICE = "Ask is_initialized first, and say there what holds without ranks."


def _names_group(port: Port, node: cst.Call) -> bool:
    return any(literal_of(port.file.code(each.value)) != "None" for each in node.args)


def report_early_questions(port: Port) -> None:
    """Report those that the file may ask too early: the first place, and how many more there are."""
    if port.asked_early:
        first, *others = port.asked_early
        lines = sorted({port.file.place(each)[0] for each in others} - {port.file.place(first)[0]})
        more = f"; so it is on line {', '.join(map(str, lines))}" if lines else ""
        why = f"before the program initialises, {port.source.framework} answers this, and torch raises an error{more}"
        port.changed(first, "before-init", why, _ADVICE)
