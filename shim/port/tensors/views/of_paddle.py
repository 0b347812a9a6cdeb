"""Parts of a tensor that the code writes into: ``split`` and ``chunk`` give views in torch and MindSpore, and copies in Paddle."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import libcst as cst

from shim.port.correspondences import Form, rows_with
from shim.port.plan import Left
from shim.port.reading import passed
from shim.port.reading.evidence import Evidence
from shim.port.reading.tensor_kinds import TensorKinds
from shim.port.rules import Port

_WRITTEN = ("tensor", "output", "outputs")  # roles; a sent tensor is read alone
_SENT = ("send", "send_in_background")
_PARTS = ("chunk", "split")
_SAME_ELEMENTS = ("enumerate", "list", "reversed", "sorted", "tuple", "zip")
_SAME_MEMORY = ("contiguous", "detach", "flatten", "reshape", "squeeze", "t", "transpose", "unsqueeze", "view")


def written_parts(port: Port, kinds: TensorKinds) -> set[cst.CSTNode]:
    """Return the calls that take a tensor to parts into which a collective, ``copy_``, an operator in place or an assignment writes."""
    if (port.source.framework == "paddle") == (port.target.framework == "paddle"):
        return set()
    parts, found = _Parts(port, kinds.evidence), set()
    for call, _ in port.file.nodes.of(cst.Call):
        for value in _written(port, call):
            found |= parts.of(value)
    if port.source.framework == "torch":
        for node, _ in port.file.nodes.of(cst.AugAssign):
            found |= parts.of(node.target)
    for target, _ in port.file.nodes.of(cst.AssignTarget):
        if isinstance(target.target, cst.Subscript) and kinds.of(target.target.value) == "tensor":
            found |= parts.of(target.target.value)
    return found


def check_views(port: Port, call: cst.Call) -> None:
    """Report that the parts that *call* makes are views on one side alone. Raises Left where they are in the source."""
    if port.source.framework != "paddle":
        raise Left(
            "views-as-outputs",
            "the code writes into the parts of a tensor, of which Paddle gives copies: the tensor itself would not change",
            "Have the code write into tensors of its own, and join them afterwards.",
        )
    port.report(
        call,
        "changed",
        "views-as-outputs",
        f"the code writes into the parts of a tensor, of which {port.target.framework} gives views: the tensor itself changes, too",
        "Make a copy of each part if the code goes on with the tensor.",
    )


def _written(port: Port, call: cst.Call) -> Iterator[cst.BaseExpression]:
    """Yield the tensors, or lists of them, into which *call* writes."""
    if not isinstance(call.func, (cst.Name, cst.Attribute)):
        return
    name = port.file.imported(call.func)
    if name is None and isinstance(call.func, cst.Attribute) and call.func.attr.value == "copy_":
        yield call.func.value
    for row, form in rows_with(name, port.plan.source) if name is not None else ():
        if row not in _SENT and not _is_to_send(port, form, call):
            for value, parameter in passed(call, form):
                if parameter.role in _WRITTEN:
                    yield value


def _is_to_send(port: Port, form: Form, call: cst.Call) -> bool:
    """Tell whether *call* makes a P2POp that sends."""
    functions = (port.file.imported(value) for value, each in passed(call, form) if each.role == "function")
    return any(row in _SENT for name in functions if name for row, _ in rows_with(name, port.plan.source))


class _Parts:
    """Finds the calls whose parts an expression is or holds."""

    def __init__(self, port: Port, evidence: Evidence) -> None:
        self._port = port
        self._evidence = evidence

    def of(self, node: cst.CSTNode, seen: frozenset[Hashable] = frozenset()) -> set[cst.CSTNode]:
        """Return these calls, without those by way of variables that are *seen*."""
        if isinstance(node, cst.Call):
            return self._of_call(node, seen)
        found: set[cst.CSTNode] = set()
        if (variable := self._evidence.variable(node)) is not None and variable not in seen:
            assignments = self._evidence.assignments(variable)
            values = [value for how, value in assignments if how in ("value", "element")]
            found = self._all(values, seen | {variable})
        if isinstance(node, cst.Subscript) or (isinstance(node, cst.Attribute) and node.attr.value in ("data", "T")):
            return found | self.of(node.value, seen)
        if isinstance(node, (cst.List, cst.Tuple)):
            return self._all([element.value for element in node.elements], seen)
        if isinstance(node, cst.ListComp):
            return self.of(node.elt, seen)
        return self._all([node.body, node.orelse], seen) if isinstance(node, cst.IfExp) else found

    def _of_call(self, node: cst.Call, seen: frozenset[Hashable]) -> set[cst.CSTNode]:
        function = node.func
        name = self._port.file.imported(function)
        last = (name or self._port.file.code(function)).rpartition(".")[2]
        if name is None and isinstance(function, cst.Name):
            return self._all([each.value for each in node.args], seen) if last in _SAME_ELEMENTS else set()
        if last in _PARTS:
            return {node}
        if name is None and isinstance(function, cst.Attribute) and last in _SAME_MEMORY:
            return self.of(function.value, seen)
        return set()

    def _all(self, nodes: Sequence[cst.CSTNode], seen: frozenset[Hashable]) -> set[cst.CSTNode]:
        return set().union(*(self.of(node, seen) for node in nodes))
