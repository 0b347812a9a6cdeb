"""Arrays of NumPy that share a tensor's memory, as ``numpy`` gives them in torch and MindSpore; in Paddle they are copies."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shim.port.rules import Port

_MADE_ANEW = """
all any argmax argmin astype copy dtype item max mean min nbytes ndim prod shape size std sum tobytes tolist
"""
_READ_ALONE = """
bool bytes float int len np.array numpy.array print repr set sorted str sum
"""
_NEW_TENSOR = """
abs cat clone concat copy max mean min ones_like stack sum zeros_like
"""
_SAME_MEMORY = """
contiguous cpu detach flatten reshape squeeze unsqueeze view
"""


def report_shared_memory(port: Port, node: cst.CSTNode, tensor: cst.BaseExpression) -> None:
    """Report *node*, which takes *tensor* to an array, where the frameworks differ and the program keeps both."""
    frameworks = (port.source.framework, port.target.framework)
    if (frameworks[0] == "paddle") == (frameworks[1] == "paddle"):
        return
    if _is_new(tensor) or any(each is node for each in _used_up(port)):
        return
    shared = next(each for each in frameworks if each != "paddle")
    port.report(
        node,
        "changed",
        "numpy-memory",
        f"the array shares the tensor's memory in {shared}, and is a copy in Paddle: what changes one of them later changes the other in {shared} alone",
        "Take the array after the last change of the tensor; copy it where the code goes on with the values from before.",
    )


def _is_new(tensor: cst.BaseExpression) -> bool:
    """Tell whether the tensor has no other name."""
    if not isinstance(tensor, cst.Call) or not isinstance(tensor.func, cst.Attribute):
        return isinstance(tensor, (cst.BinaryOperation, cst.UnaryOperation))
    name = tensor.func.attr.value
    return name in _NEW_TENSOR.split() or (name in _SAME_MEMORY.split() and _is_new(tensor.func.value))


def _used_up(port: Port) -> Iterator[cst.CSTNode]:
    """Yield the expressions of which nothing is left after the one that they are in."""
    nodes = port.file.nodes
    for attribute, _ in nodes.of(cst.Attribute):
        if attribute.attr.value in _MADE_ANEW.split():
            yield attribute.value
    for call, _ in nodes.of(cst.Call):
        if port.file.code(call.func) in _READ_ALONE.split():
            yield from (argument.value for argument in call.args)
    for operation, _ in nodes.of(cst.BinaryOperation):
        yield from (operation.left, operation.right)
    for comparison, _ in nodes.of(cst.Comparison):
        yield from (comparison.left, *(each.comparator for each in comparison.comparisons))
