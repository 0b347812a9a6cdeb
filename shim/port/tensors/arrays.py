"""Arrays of NumPy that share a tensor's memory, as ``numpy`` gives them in torch and MindSpore; in Paddle they are copies."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shim.port.rules import Port

__all__ = ["report_shared_memory"]

_MADE_ANEW = frozenset(
    "all any argmax argmin astype copy dtype item max mean min ndim nbytes prod shape size std sum tobytes tolist".split()
)
_READ_ALONE = frozenset("bool bytes float int len list print repr set sorted str sum tuple np.array numpy.array".split())


def report_shared_memory(port: Port, node: cst.CSTNode) -> None:
    """Report *node*, which takes a tensor to an array, where the frameworks differ and the program keeps the array."""
    frameworks = (port.source.framework, port.target.framework)
    if (frameworks[0] == "paddle") == (frameworks[1] == "paddle") or any(each is node for each in _used_up(port)):
        return
    shared = next(each for each in frameworks if each != "paddle")
    port.report(
        node,
        "changed",
        "numpy-memory",
        f"the array shares the tensor's memory in {shared}, and is a copy in Paddle: what changes one of them later changes the other in {shared} alone",
        "Take the array after the last change of the tensor; copy it where the code goes on with the values from before.",
    )


def _used_up(port: Port) -> Iterator[cst.CSTNode]:
    """Yield the expressions of which nothing is left after the one that they are in."""
    nodes = port.file.nodes
    for attribute, _ in nodes.of(cst.Attribute):
        if attribute.attr.value in _MADE_ANEW:
            yield attribute.value
    for call, _ in nodes.of(cst.Call):
        if port.file.code(call.func) in _READ_ALONE:
            yield from (argument.value for argument in call.args)
    for operation, _ in nodes.of(cst.BinaryOperation):
        yield from (operation.left, operation.right)
    for comparison, _ in nodes.of(cst.Comparison):
        yield from (comparison.left, *(each.comparator for each in comparison.comparisons))
