"""Names of the API for which the table has nothing."""

from __future__ import annotations

import libcst as cst

from shim.port.correspondences import declared, recorded
from shim.port.plan import Left
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
    if port.plan.onto == "native" and port.source.framework == port.target.framework and _is_still_there(port, name):
        return
    if name.startswith(port.source.names) and name.rpartition(".")[2][:1].isupper():
        port.report(
            node,
            "left",
            "communicates-itself",
            f"{name} communicates through the groups of {port.source.framework} itself, which the ported program does not start",
            f"Use what {port.target.framework} has in its place, or reduce the gradients by collectives.",
        )
        return
    left = left_without(port, name)
    port.report(node, "left", left.rule, left.why, left.advice)


def _is_still_there(port: Port, name: str) -> bool:
    """Tell whether another version of the same framework has *name*, as far as is recorded: what has never been recorded is none of its collectives."""
    return recorded(name, port.plan.source) is None or recorded(name, port.plan.target) is not None
