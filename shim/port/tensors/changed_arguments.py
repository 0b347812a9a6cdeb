"""Operators in place by which functions that stay as they are change tensors that the ported functions pass to them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import libcst as cst

from shim.port.reading import SourceFile
from shim.port.reading.definitions import Definitions
from shim.port.tensors.inference.kinds import TensorKinds

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
        names = {each.value: each for each in parameters}
        before = len(self._tensors), len(self._lists)
        for position, argument in enumerate(call.args):
            if argument.star:
                break
            word = argument.keyword.value if argument.keyword is not None else None
            name = names.get(word) if word else parameters[position] if position < len(parameters) else None
            if name is None:
                continue
            kind = self._kinds.of(argument.value)
            may_be = is_ported and kind in ("tensor", "tensors", None)
            if may_be or self._is_one(argument.value):
                self._tensors.add(self._evidence.variable(name))
            if (is_ported and kind == "tensors") or self._evidence.variable(argument.value) in self._lists:
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
