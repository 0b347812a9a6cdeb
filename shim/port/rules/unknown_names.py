"""Names of the API for which the table has nothing."""

from __future__ import annotations

import libcst as cst

from shim.port.rules.port import Port

__all__ = ["report_unknown"]


def report_unknown(port: Port, node: cst.CSTNode, name: str) -> None:
    """Report that *name*, at *node*, is left. Classes that communicate by themselves do so in their own framework's world, which the port no longer starts."""
    if name.startswith(port.source.names) and name.rpartition(".")[2][:1].isupper():
        port.report(
            node,
            "left",
            "communicates-itself",
            f"{name} communicates through the groups of {port.source.framework} itself, which the ported program does not start",
            f"Use what {port.target.framework} has in its place, or reduce the gradients by collectives.",
        )
        return
    port.report(
        node,
        "left",
        "no-equivalent",
        f"{port.target.framework} has no equivalent of {name}",
        "Write by hand what the code needs of it; or keep this file on the source's frontend.",
    )
