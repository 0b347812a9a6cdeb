"""Operators in place, which change the tensor in torch alone, also in functions that stay as they are and get a tensor from a ported one."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import libcst as cst

from shim.port.correspondences.members import templates_of
from shim.port.reading.evidence import has_plain_index
from shim.port.reading.expressions import is_closed
from shim.port.reading.flows import Definitions, bound
from shim.port.reading.source_file import SourceFile, below
from shim.port.reading.tensor_kinds import TensorKinds
from shim.port.rules.port import Port
from shim.port.tensors.members import match
from shim.port.tensors.views import report_unreached

_JOINED = ("list", "mapping", "shape", "tensors", "text")  # values that are added to others of their kind alone


def port_in_place(port: Port, node: cst.AugAssign) -> None:
    """Keep ``+=`` and its like in place, or not: torch changes the tensor, and Paddle and MindSpore make a new one."""
    target = node.target
    ours, theirs = port.source.framework == "torch", port.target.framework == "torch"
    if ours == theirs or _is_the_same(port, target):
        return
    kind = port.tensors.of(target)
    if kind == "tensor" and (found := match(port, target)) is not None and not templates_of(found[0], port.plan.target):
        return  # it is reported where it stands
    if kind == "tensor" and ours and report_unreached(port, node, target):
        return
    if kind == "tensor" and _is_path(target):
        _write(port, node, target, "{0}.copy_({0} {1} {2})" if ours else "{0} = {0} {1} {2}")
    else:
        report_in_place(port, node)


def report_in_place(port: Port, node: cst.AugAssign) -> None:
    """Report the operator, unless the source shows that it changes no tensor."""
    target = node.target
    if port.tensors.of(target) in ("tensor", None) and port.tensors.of(node.value) not in _JOINED:
        code, sign = port.file.code(target), port.file.code(node.operator).strip()
        port.left(
            node,
            "may-be-tensor",
            f"{code} may be a tensor, which {sign} changes in torch, and which stays as it was in Paddle and MindSpore",
            "Annotate it as a tensor, and port again; or write by hand what is meant if it is one.",
        )


def _is_the_same(port: Port, target: cst.BaseExpression) -> bool:
    """Tell whether all frameworks change the tensor itself: a part of it or, in Paddle, a gradient, which keeps its memory."""
    if isinstance(target, cst.Subscript):
        return port.tensors.of(target.value) == "tensor"
    return port.source.framework == "paddle" and isinstance(target, cst.Attribute) and target.attr.value == "grad"


def _is_path(node: cst.BaseExpression) -> bool:
    """Tell whether *node* may be written twice."""
    if isinstance(node, cst.Attribute) or (isinstance(node, cst.Subscript) and has_plain_index(node)):
        return _is_path(node.value)
    return isinstance(node, cst.Name)


def _write(port: Port, node: cst.AugAssign, target: cst.BaseAssignTargetExpression, template: str) -> None:
    """Write the statement by the *template*, with the target, the operator and the value in its places."""
    code, sign = port.file.code(target), port.file.code(node.operator).strip().removesuffix("=")
    before, after = template.format(code, sign, "\0").split("\0")
    if not is_closed(node.value, cst.Integer, cst.Float):
        before, after = before + "(", ")" + after
    port.edits.replace(port.file.span(target).start, port.file.outer_span(node.value).start, before)
    port.edits.insert_after(port.file.outer_span(node.value).end, after)
    port.done.update(below(target))
    port.places += 1


_SAME_ELEMENTS = ("enumerate", "list", "reversed", "tuple", "zip")
_SAME_MEMORY = """
T chunk contiguous data detach flatten permute reshape split squeeze t transpose unbind unsqueeze view
"""


def operators_on_arguments(
    file: SourceFile, kinds: TensorKinds, ported: Iterable[cst.Call], operators: Iterable[cst.AugAssign]
) -> list[cst.AugAssign]:
    """Return those of the *operators* that may change a tensor which one of the calls *ported* passes, on whatever way."""
    arguments = _Arguments(kinds)
    definitions, certain = Definitions(file), set(ported)
    calls = []
    for call, _ in file.nodes.of(cst.Call):
        if (called := definitions.called(call)) is not None:
            calls.append((call, called.parameters))
    grown = True
    while grown:
        grown = False
        for call, parameters in calls:
            grown = arguments.add(call, parameters, call in certain) or grown
    return [node for node in operators if arguments.may_be_in(node.target)]


class _Arguments:
    """Which parameters may get tensors: ``_tensors``, and among them ``_lists`` that are certain to get lists of them."""

    def __init__(self, kinds: TensorKinds) -> None:
        self._kinds = kinds
        self._evidence = kinds.evidence
        self._tensors: set[Hashable] = set()
        self._lists: set[Hashable] = set()

    def add(self, call: cst.Call, parameters: Sequence[cst.Name], is_ported: bool) -> bool:
        """Add the parameters to which *call* passes what may be a tensor. Returns whether there are more of them now."""
        before = len(self._tensors), len(self._lists)
        for value, name in bound(call.args, parameters):
            kind = self._kinds.of(value)
            may_be = is_ported and kind in ("tensor", "tensors", None)
            if may_be or self._is_one(value):
                self._tensors.add(self._evidence.variable(name))
            if (is_ported and kind == "tensors") or self._evidence.variable(value) in self._lists:
                self._lists.add(self._evidence.variable(name))
        return before != (len(self._tensors), len(self._lists))

    def may_be_in(self, target: cst.BaseExpression) -> bool:
        """Tell whether an operator in place on *target* may change one of the tensors in torch alone."""
        if isinstance(target, cst.Subscript):  # an element of a tensor changes in all frameworks
            return self._evidence.variable(target.value) in self._lists
        return self._is_one(target)

    def _is_one(self, node: cst.CSTNode, seen: frozenset[Hashable] = frozenset()) -> bool:
        if isinstance(node, cst.Name):
            variable = self._evidence.variable(node)
            if variable in self._tensors:
                return True
            if variable is None or variable in seen:
                return False
            ways = self._evidence.assignments(variable)
            return any(how in ("value", "element") and self._is_one(value, seen | {variable}) for how, value in ways)
        if isinstance(node, cst.Call):
            if isinstance(node.func, cst.Name) and node.func.value in _SAME_ELEMENTS:
                return any(self._is_one(each.value, seen) for each in node.args)
            return isinstance(node.func, cst.Attribute) and self._is_one(node.func, seen)
        if isinstance(node, cst.Attribute):
            return node.attr.value in _SAME_MEMORY.split() and self._is_one(node.value, seen)
        if isinstance(node, (cst.List, cst.Tuple)):
            return any(self._is_one(each.value, seen) for each in node.elements)
        return isinstance(node, cst.Subscript) and self._is_one(node.value, seen)
