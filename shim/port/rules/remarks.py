"""What the author has to know of names for which the table has nothing, and of ported calls: what they returned or told, and the target's do not."""

from __future__ import annotations

import libcst as cst

from shim.port.correspondences.functions import COLLECTIVES, POINT_TO_POINT
from shim.port.correspondences.no_equivalent import declared
from shim.port.correspondences.returning import returned
from shim.port.correspondences.table import Form, recorded, rows_with
from shim.port.plan import Left
from shim.port.reading.expressions import discarded, flag_of, passed
from shim.port.reading.source_file import below
from shim.port.rules.port import Port


def left_without(port: Port, name: str) -> Left:
    """Return why the source's *name* is left: as it is declared, if it is."""
    known = declared(name, port.plan.source, port.plan.target)
    why = f"{port.target.framework} has no equivalent of {name}"
    if known is not None:
        return Left("no-equivalent", f"{why}: {known.why}", known.advice)
    return Left(
        "no-equivalent", why, "Write by hand what the code needs of it; or keep this file on the source's frontend."
    )


def report_unknown(port: Port, node: cst.CSTNode, name: str) -> None:
    """Report that *name*, at *node*, is left. Classes that communicate by themselves do so in their own framework's world, which the port no longer starts."""
    if port.plan.onto == "native" and not port.between_frameworks and _is_still_there(port, name):
        return
    if name.startswith(port.source.names) and name.rpartition(".")[2][:1].isupper():
        port.left(
            node,
            "communicates-itself",
            f"{name} communicates through the groups of {port.source.framework} itself, which the ported program does not start",
            f"Use what {port.target.framework} has in its place, or reduce the gradients by collectives.",
        )
        return
    left = left_without(port, name)
    port.left(node, *left.note)


def report_star(port: Port, node: cst.Call, function: cst.Attribute) -> None:
    """Report a call of what has the name of the API's module, and can only come from an ``import *``."""
    module, name = function.value, f"{port.source.main}.{function.attr.value}"
    if (
        isinstance(module, cst.Name)
        and module.value.endswith(("dist", "distributed"))
        and rows_with(name, port.plan.source)
        and port.file.is_unbound(module)
        and port.plan.source != port.plan.target
        and not port.plan.reexports  # of which the import itself is reported
    ):
        why = f"{module.value} comes from an import *, and may be {port.source.main}"
        port.left(node, "star-import", why, "Import it by its name, and port again.")


def _is_still_there(port: Port, name: str) -> bool:
    """Tell whether another version of the same framework has *name*, as far as is recorded: what has never been recorded is none of its collectives."""
    return recorded(name, port.plan.source) is None or recorded(name, port.plan.target) is not None


_TENSOR_ROWS = frozenset((*COLLECTIVES, *POINT_TO_POINT)) - {"barrier", "batch"}


def report_source_tensors(port: Port) -> None:
    """Report the calls that get the source's tensors where the target itself serves them, which takes its own alone."""
    if port.plan.onto == "shim" or port.plan.scope != "collectives" or not port.between_frameworks:
        return
    names = [(call, port.file.imported(call.func)) for call, _ in port.file.nodes.of(cst.Call)]
    calls = [call for call, name in names if name and _takes_tensors(name, port.plan.source)]
    if calls:
        lines = sorted({port.file.place(call)[0] for call in calls})
        others = f", on line {', '.join(map(str, lines))}" if len(lines) > 1 else ""
        ours, theirs = port.source.framework, port.target.framework
        why = f"{theirs} takes its own tensors alone, and the program has those of {ours} in its collectives{others}"
        first = min(calls, key=lambda call: port.file.span(call).start)
        port.left(first, "source-tensors", why, "Port with --scope statements, and models by a converter of models.")


def _takes_tensors(name: str, api: str) -> bool:
    return any(row in _TENSOR_ROWS for row, _ in rows_with(name, api)) or returned(name, api) is not None


def remark(port: Port, node: cst.Call, row: str, source: Form, target: Form) -> None:
    """Report what is different about the call *node* of *source*'s function, which becomes one of *target*'s."""
    if not port.between_frameworks:
        return
    if row == "backend_of":
        port.changed(
            node,
            "backend-name",
            f"{target.name} returns a backend's name of {port.target.framework}",
            "Check what the code compares it with.",
        )
    elif row == "receive" and port.source.framework == "torch" and not _is_statement(port, node):
        port.changed(
            node,
            "result-used",
            f"{source.name} returns the rank that sent, and {target.name} does not",
            "Use the rank that the call names.",
        )
    elif row == "destroy" and node.args and port.target.framework == "mindspore" and not _makes_one_group(port):
        port.changed(
            node,
            "groups-of-same-ranks",
            "In MindSpore, groups with the same ranks are one group, and this call destroys all of them",
            "Destroy a group only when no group with the same ranks, be it the world, is still in use.",
        )
    elif "paddle" in (port.source.framework, port.target.framework) and _is_synchronous(node, source):
        if not _is_statement(port, node):
            port.changed(
                node,
                "result-used",
                "a call that does not go on in the background returns a task in Paddle, and None elsewhere",
                "Ask for it to go on in the background, or leave its result alone.",
            )
    elif source.name == "torch.distributed.monitored_barrier" and port.plan.onto == "native":
        port.changed(
            node,
            "missing-ranks",
            f"{source.name} names the ranks that have not come, and {target.name} does not",
            "Run the program on shim's frontend to find such ranks.",
        )


def _makes_one_group(port: Port) -> bool:
    """Tell whether the file makes a single group besides the world, of ranks that it gives, by a call outside of loops."""
    nodes = port.file.nodes
    names = [*nodes.of(cst.Name), *nodes.of(cst.Attribute)]
    uses = [each for each, _ in names if (port.file.imported(each) or "").endswith(".new_group")]
    calls = [call for call, _ in nodes.of(cst.Call) if call.func in uses and call.args]
    loops = [each for kind in (cst.For, cst.While, cst.ListComp, cst.GeneratorExp) for each, _ in nodes.of(kind)]
    return len(uses) == len(calls) == 1 and not any(calls[0] in below(loop) for loop in loops)


def _is_synchronous(node: cst.Call, source: Form) -> bool:
    """Tell whether *node* calls a function that can go on in the background, and does not ask for it."""
    if source.of_role("background") is None or any(argument.star for argument in node.args):
        return False
    given = [(value, each) for value, each in passed(node, source) if each.role == "background"]
    return all(flag_of(value) is each.inverted for value, each in given)


def _is_statement(port: Port, node: cst.Call) -> bool:
    """Tell whether nothing is done with what *node* returns: it is a statement, or is no call itself, as in ``functools.partial``."""
    statement = port.statement
    if statement is None or node.func not in port.done:
        return True
    return any(value is node for each in statement.body for value in discarded(each))
