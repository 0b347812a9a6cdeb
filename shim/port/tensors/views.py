"""Parts of tensors that the code writes into, and arrays of NumPy: whether they share the tensor's memory differs between the frameworks."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import libcst as cst

from shim.port.correspondences.table import Form, rows_with
from shim.port.plan import Left
from shim.port.reading.evidence import Evidence
from shim.port.reading.expressions import passed
from shim.port.reading.tensor_kinds import TensorKinds
from shim.port.rules.port import Port

_TURNED = ("T", "mT", "permute", "swapaxes", "t", "transpose")
_PARTS = ("chunk", "narrow", "select", "split", "unbind")
_SAME_MEMORY = ("data", "detach", "squeeze", "unsqueeze", "view")
_SAME_OR_COPIED = ("contiguous", "flatten", "reshape")  # they copy what is turned
_SAME_ELEMENTS = ("enumerate", "list", "reversed", "sorted", "tuple", "zip")


def report_copy(port: Port, node: cst.Call) -> bool:
    """Report *node* if it is a ``copy_`` into such a part. Returns whether it is."""
    function = node.func
    if not isinstance(function, cst.Attribute) or function.attr.value != "copy_":
        return False
    return report_unreached(port, node, function.value)


def report_unreached(port: Port, node: cst.CSTNode, target: cst.BaseExpression) -> bool:
    """Report *node*, which writes into *target* by ``copy_``, if that is such a part. Returns whether it is."""
    if port.target.framework != "mindspore" or port.source.framework == "mindspore":
        return False
    if not _is_part(port, target):
        return False
    port.left(
        node,
        "views-as-outputs",
        f"{port.file.code(target)} is a part of a tensor, into which MindSpore's copy_ does not write: it raises an error, or has no effect",
        "Write into the tensor itself by an index, as in x[1:] = y.",
    )
    return True


def _is_part(port: Port, node: cst.CSTNode, seen: frozenset[Hashable] = frozenset(), *, turned: bool = True) -> bool:
    """Tell whether the tensor is such a part, or the list has some; one that is only *turned* does not count without it."""
    kinds, evidence = port.tensors, port.tensors.evidence
    if isinstance(node, cst.Call):
        return _is_part_of_call(port, node, seen, turned=turned)
    if isinstance(node, cst.Attribute) and node.attr.value in _TURNED and kinds.of(node.value) == "tensor":
        return turned or _is_part(port, node.value, seen, turned=turned)
    if isinstance(node, cst.Attribute) and node.attr.value in _SAME_MEMORY and kinds.of(node.value) == "tensor":
        return _is_part(port, node.value, seen, turned=turned)
    if isinstance(node, (cst.List, cst.Tuple, cst.ListComp, cst.IfExp)):
        return any(_is_part(port, each, seen, turned=turned) for each in _inner(node))
    if isinstance(node, cst.Subscript) and kinds.of(node.value) == "tensor" and not _is_whole(node):
        return True
    variable = evidence.variable(node)
    if variable is not None and variable not in seen:
        for how, value in evidence.assignments(variable):
            if how == "element" and kinds.of(value) == "tensor":
                return True
            if how in ("value", "element") and _is_part(port, value, seen | {variable}, turned=turned):
                return True
    return isinstance(node, cst.Subscript) and _is_part(port, node.value, seen, turned=turned)


def _inner(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the elements of a display, or those of which a choice is one; nothing of other expressions."""
    if isinstance(node, (cst.List, cst.Tuple)):
        return [element.value for element in node.elements]
    if isinstance(node, cst.ListComp):
        return [node.elt]
    return [node.body, node.orelse] if isinstance(node, cst.IfExp) else []


def _is_part_of_call(port: Port, node: cst.Call, seen: frozenset[Hashable], *, turned: bool) -> bool:
    name = port.file.imported(node.func)
    last = (name or port.file.code(node.func)).rpartition(".")[2]
    arguments = [each.value for each in node.args]
    if isinstance(node.func, cst.Name) and name is None:
        return last in _SAME_ELEMENTS and any(_is_part(port, each, seen, turned=turned) for each in arguments)
    of = arguments[0] if name is not None and arguments else getattr(node.func, "value", None)
    if of is None or last in _PARTS:
        return last in _PARTS
    if last in _TURNED:
        return turned or _is_part(port, of, seen, turned=turned)
    if last in _SAME_MEMORY:
        return _is_part(port, of, seen, turned=turned)
    return last in _SAME_OR_COPIED and _is_part(port, of, seen, turned=False)


def _is_whole(node: cst.Subscript) -> bool:
    """Tell whether the index takes the whole tensor: ``[:]``, ``[0:]``, ``[...]``, ``[None]``."""
    for element in node.slice:
        index = element.slice
        if isinstance(index, cst.Slice):
            if index.upper is not None or index.step is not None:
                return False
            if index.lower is not None and not (isinstance(index.lower, cst.Integer) and index.lower.value == "0"):
                return False
        elif not isinstance(index, cst.Index) or not (
            isinstance(index.value, cst.Ellipsis) or (isinstance(index.value, cst.Name) and index.value.value == "None")
        ):
            return False
    return True


_WRITTEN = ("tensor", "output", "outputs")  # roles; a sent tensor is read alone
_SENT = ("send", "send_in_background")
_COPIED_PARTS = ("chunk", "expand", "expand_as", "split")
_VIEWS = ("contiguous", "detach", "flatten", "reshape", "squeeze", "t", "transpose", "unsqueeze", "view")


def written_parts(port: Port, kinds: TensorKinds) -> set[cst.CSTNode]:
    """Return the calls that take a tensor to parts into which a collective, a method or an operator in place, or an assignment writes."""
    if not port.to_or_from("paddle"):
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
    port.changed(
        call,
        "views-as-outputs",
        f"the code writes into the parts of a tensor, of which {port.target.framework} gives views: the tensor itself changes, too",
        "Make a copy of each part if the code goes on with the tensor.",
    )


def _written(port: Port, call: cst.Call) -> Iterator[cst.BaseExpression]:
    """Yield the tensors, or lists of them, into which *call* writes."""
    if not isinstance(call.func, (cst.Name, cst.Attribute)):
        return
    name = port.file.imported(call.func)
    if name is None and isinstance(call.func, cst.Attribute) and call.func.attr.value.endswith("_"):
        yield call.func.value  # torch's and Paddle's way to say that a method writes
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
        return self._all(_inner(node), seen) | found

    def _of_call(self, node: cst.Call, seen: frozenset[Hashable]) -> set[cst.CSTNode]:
        function = node.func
        name = self._port.file.imported(function)
        last = (name or self._port.file.code(function)).rpartition(".")[2]
        if name is None and isinstance(function, cst.Name):
            return self._all([each.value for each in node.args], seen) if last in _SAME_ELEMENTS else set()
        if last in _COPIED_PARTS:
            return {node}
        if name is None and isinstance(function, cst.Attribute) and last in _VIEWS:
            return self.of(function.value, seen)
        return set()

    def _all(self, nodes: Sequence[cst.CSTNode], seen: frozenset[Hashable]) -> set[cst.CSTNode]:
        return set().union(*(self.of(node, seen) for node in nodes))


_MADE_ANEW = """
all any argmax argmin astype copy dtype item max mean min nbytes ndim prod shape size std sum tobytes tolist
"""
_READ_ALONE = """
bool bytes float int len np.array numpy.array print repr set sorted str sum
"""
_NEW_TENSOR = """
abs cat clone concat copy max mean min ones_like stack sum zeros_like
"""
_ALIASES = """
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
    port.changed(
        node,
        "numpy-memory",
        f"the array shares the tensor's memory in {shared}, and is a copy in Paddle: what changes one of them later changes the other in {shared} alone",
        "Take the array after the last change of the tensor; copy it where the code goes on with the values from before.",
    )


def _is_new(tensor: cst.BaseExpression) -> bool:
    """Tell whether the tensor has no other name."""
    if not isinstance(tensor, cst.Call) or not isinstance(tensor.func, cst.Attribute):
        return isinstance(tensor, (cst.BinaryOperation, cst.UnaryOperation))
    name = tensor.func.attr.value
    return name in _NEW_TENSOR.split() or (name in _ALIASES.split() and _is_new(tensor.func.value))


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
