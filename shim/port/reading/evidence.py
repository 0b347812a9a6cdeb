"""What a file shows of the kinds of its variables: what they are assigned, how they are annotated, what they are passed as; and which of its functions
have collectives in them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

import libcst as cst
from libcst.metadata import Assignment

from shim.port.correspondences.functions import COLLECTIVES, OBJECTS, POINT_TO_POINT
from shim.port.correspondences.names import AUTOGRAD_CLASSES, tensor_name_for
from shim.port.correspondences.returning import returned
from shim.port.correspondences.table import rows_with
from shim.port.reading.expressions import passed
from shim.port.reading.source_file import SourceFile

_COLLECTIVES = frozenset((*COLLECTIVES, *OBJECTS, *POINT_TO_POINT))


class CollectiveCallers:
    """``functions`` are the outermost functions that call a collective, ``classes`` those of autograd whose methods do, by themselves or by the file's functions.

    ``in_module`` tells whether a statement outside of all functions does.
    """

    def __init__(self, file: SourceFile, api: str) -> None:
        self.functions: set[cst.CSTNode] = set()
        self.in_module = False
        nodes = file.nodes
        autograd = {node: set[str]() for node, _ in nodes.of(cst.ClassDef) if is_autograd(file, api, node)}
        self.classes: set[cst.CSTNode] = set()
        called: dict[cst.CSTNode, set[str]] = defaultdict(set)
        for node, owner in (*nodes.of(cst.Name), *nodes.of(cst.Attribute)):
            if _is_collective(file.imported(node), api):
                outer = nodes.outer(owner)
                function = outermost(outer)
                self.functions |= {function} if function is not None else set()
                self.in_module = self.in_module or not outer
                self.classes |= {each for each in outer if each in autograd}
        for call, owner in nodes.of(cst.Call):
            if isinstance(call.func, cst.Name) and file.imported(call.func) is None:
                outer = nodes.outer(owner)
                called[outermost(outer) or file.module].add(call.func.value)
                for each in outer:
                    if isinstance(each, cst.ClassDef) and each in autograd:
                        autograd[each].add(call.func.value)
        self._follow_calls(called, autograd)

    def _follow_calls(self, called: Mapping[cst.CSTNode, set[str]], autograd: Mapping[cst.ClassDef, set[str]]) -> None:
        """Add the classes of autograd that call a function of the file which calls a collective, and their methods."""
        names = {each.name.value for each in self.functions if isinstance(each, cst.FunctionDef)}
        grown = True
        while grown:
            more = {
                each.name.value for each, own in called.items() if isinstance(each, cst.FunctionDef) and own & names
            }
            grown, names = not more <= names, names | more
        self.classes |= {each for each, own in autograd.items() if own & names}
        for each in self.classes:
            body = cst.ensure_type(each, cst.ClassDef).body.body
            self.functions |= {part for part in body if isinstance(part, cst.FunctionDef)}


def _is_collective(name: str | None, api: str) -> bool:
    if name is None:
        return False
    return any(row in _COLLECTIVES for row, _ in rows_with(name, api)) or returned(name, api) is not None


def outermost(outer: Sequence[cst.FunctionDef | cst.ClassDef]) -> cst.FunctionDef | None:
    """Return the first function of those that a place is in."""
    return next((each for each in outer if isinstance(each, cst.FunctionDef)), None)


def is_autograd(file: SourceFile, api: str, node: cst.ClassDef) -> bool:
    """Tell whether the class *node* has the framework's class of functions with gradients as a base."""
    names = (file.imported(base.value) for base in node.bases)
    return any(name is not None and tensor_name_for(name, api, api) in AUTOGRAD_CLASSES for name in names)


_OF_ROLE = {
    "group": "group",
    "tensor": "tensor",
    "input": "tensor",
    "output": "tensor",
    "inputs": "tensors",
    "outputs": "tensors",
}
_NO_TENSORS = ("int", "float", "complex", "bool", "str", "Number")  # classes that isinstance asks for
_SELF = ("self", "cls", "ctx")


class Evidence(cst.CSTVisitor):
    """``passed`` has the kinds as which each variable is passed to collectives, by itself or by the attribute in which it is kept.

    A variable is what ``variable`` returns. It may be an attribute or an element: ``p.grad``, ``losses["a"]``.
    """

    def __init__(self, file: SourceFile, api: str) -> None:
        self._file = file
        self._api = api
        self._takes_any = b"shim.frontends." in file.text  # a frontend's collectives take any framework's tensors
        self._bound: dict[cst.CSTNode, tuple[str, cst.CSTNode]] = {}  # by the node that binds a name
        self._assigned: dict[Hashable, list[tuple[str, cst.CSTNode]]] = defaultdict(list)
        self.passed: dict[Hashable, set[str]] = defaultdict(set)
        self._kept: dict[Hashable, Hashable] = {}
        self._returned: dict[cst.CSTNode | None, list[cst.BaseExpression | None]] = defaultdict(list)
        for node, owner in file.nodes.of(cst.Return):
            self._returned[owner].append(node.value)
        self._generators = {owner for kind in (cst.Yield, cst.Await) for _, owner in file.nodes.of(kind)}
        file.module.visit(self)
        for variable, attribute in self._kept.items():
            if attribute in self.passed:
                self.passed[variable] |= self.passed[attribute]

    @property
    def variables(self) -> Sequence[Hashable]:
        """All variables of which the file shows anything, in the order of the file."""
        names = dict.fromkeys(self.variable(node) for node in self._bound if isinstance(node, cst.Name))
        return [each for each in {**names, **self._assigned, **self.passed} if each is not None]

    def shows(self, variable: Hashable) -> bool:
        """Tell whether the file shows more of an attribute or an element than that something is added to it."""
        return variable in self.passed or any(how != "added" for how, _ in self._assigned.get(variable, ()))

    def assignments(self, variable: Hashable) -> Sequence[tuple[str, cst.CSTNode]]:
        """Return how the variable gets each of its values, and from which node.

        It is assigned the ``value``, an ``element`` of it, or ``added`` it;
        it is the ``count`` of a loop; it has it as its ``default``; it is
        ``annotated``; or ``unknown``.
        """
        found = list(self._assigned.get(variable, ()))
        if isinstance(variable, frozenset):
            nodes = [each.node for each in variable if isinstance(each, Assignment)]
            found += [self._bound.get(node, ("unknown", node)) for node in nodes]
        return found

    def variable(self, node: cst.CSTNode) -> Hashable:
        """Return what is the same for all uses of a name, an attribute or an element; None for other expressions."""
        if isinstance(node, cst.Name):
            return self._file.variable(node)
        if isinstance(node, cst.Attribute):
            if isinstance(node.value, cst.Name) and node.value.value in _SELF:
                return self._file.around(node.value), node.attr.value
            owner = self.variable(node.value)
            return None if owner is None else (owner, node.attr.value)
        if isinstance(node, cst.Subscript) and has_plain_index(node):
            owner = self.variable(node.value)
            return None if owner is None else (owner, f"[{self._file.code(node.slice[0])}]")
        return None

    def returned(self, call: cst.Call) -> Sequence[cst.BaseExpression]:
        """Return what the file's function that *call* calls returns, an expression for each ``return``; nothing where that is not certain."""
        variable = self.variable(call.func) if isinstance(call.func, cst.Name) else None
        bound = [*variable] if isinstance(variable, frozenset) else []
        function = bound[0].node if len(bound) == 1 and isinstance(bound[0], Assignment) else None
        if not isinstance(function, cst.FunctionDef) or function in self._generators or function.asynchronous:
            return ()
        for each in function.decorators:
            decorator = each.decorator.func if isinstance(each.decorator, cst.Call) else each.decorator
            if self._file.imported(decorator) is None:
                return ()
        values = self._returned.get(function, [None])
        return [value for value in values if value is not None] if None not in values else ()

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            if isinstance(target.target, cst.Attribute) and isinstance(node.value, cst.Name):
                self._kept[self.variable(node.value)] = self.variable(target.target)
            self._bind(target.target, "value", node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._bind(node.target, "annotated", node.annotation)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._bind(node.target, "added", node.value)

    def visit_For(self, node: cst.For) -> None:
        self._bind(node.target, "element", node.iter)

    def visit_CompFor(self, node: cst.CompFor) -> None:
        self._bind(node.target, "element", node.iter)

    def visit_Param(self, node: cst.Param) -> None:
        value: cst.CSTNode | None = node.annotation
        if value is not None:
            self._bound[node.name] = self._bound[node] = "annotated", value
        elif node.default is not None:
            self._bound[node.name] = self._bound[node] = "default", node.default

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        """Remember the gradients that a function of autograd gets."""
        if is_autograd(self._file, self._api, node):
            for part in node.body.body:
                if isinstance(part, cst.FunctionDef) and part.name.value == "backward":
                    for parameter in part.params.params[1:]:
                        self._pass(parameter.name, "tensor")

    def visit_Call(self, node: cst.Call) -> None:
        if not isinstance(node.func, (cst.Name, cst.Attribute)):
            return
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "save_for_backward":
            for argument in node.args:
                self._pass(argument.value, "tensor")
        if isinstance(node.func, cst.Name) and node.func.value == "isinstance" and len(node.args) == 2:
            self._ask(node.args[0].value, node.args[1].value)
        name = self._file.imported(node.func)
        rows = rows_with(name, self._api) if name else ()
        found: dict[cst.BaseExpression, set[str | None]] = defaultdict(set)
        for _, form in rows:
            for value, parameter in passed(node, form):
                found[value].add(_OF_ROLE.get(parameter.role))
        for value, kinds in found.items():
            if len(kinds) == 1 and (kind := kinds.pop()) is not None and (kind == "group" or not self._takes_any):
                self._pass(value, kind)

    def _ask(self, value: cst.BaseExpression, classes: cst.BaseExpression) -> None:
        """Remember that the program takes *value* for what may be a number or a string."""
        asked = [each.value for each in classes.elements] if isinstance(classes, cst.Tuple) else [classes]
        if any(self._file.code(each).rpartition(".")[2] in _NO_TENSORS for each in asked):
            self._pass(value, "number")

    def _pass(self, node: cst.CSTNode, kind: str) -> None:
        variable = self.variable(node)
        if variable is not None:
            self.passed[variable].add(kind)
        elif kind == "tensors" and isinstance(node, (cst.List, cst.Tuple)):
            for element in node.elements:
                self._pass(element.value, "tensor")

    def _bind(self, target: cst.CSTNode, how: str, value: cst.CSTNode) -> None:
        if isinstance(target, cst.Name):
            self._bound[target] = how, value
        elif isinstance(target, (cst.Attribute, cst.Subscript)):
            if (variable := self.variable(target)) is not None:
                self._assigned[variable].append((how, value))
        elif isinstance(target, (cst.Tuple, cst.List)):
            returned = self.returned(value) if how == "value" and isinstance(value, cst.Call) else ()
            value = returned[0] if len(returned) == 1 else value
            values = value.elements if how == "value" and isinstance(value, (cst.Tuple, cst.List)) else ()
            for position, element in enumerate(target.elements):
                if len(values) == len(target.elements):
                    self._bind(element.value, "value", values[position].value)
                elif how == "value":
                    self._bind(element.value, "element", value)
                elif how == "element" and isinstance(value, cst.Call):
                    self._bind_in_loop(element.value, position, value)

    def _bind_in_loop(self, target: cst.BaseExpression, position: int, value: cst.Call) -> None:
        """Bind one of the names of a loop over ``enumerate`` or ``zip``."""
        function, arguments = self._file.code(value.func), [each.value for each in value.args if not each.star]
        if function == "enumerate" and arguments:
            self._bind(target, *(("element", arguments[0]) if position else ("count", value)))
        elif function == "zip" and position < len(arguments):
            self._bind(target, "element", arguments[position])


def has_plain_index(node: cst.Subscript) -> bool:
    """Tell whether the element is named by a variable, a number or a string."""
    index = node.slice[0].slice if len(node.slice) == 1 else None
    return isinstance(index, cst.Index) and isinstance(index.value, (cst.Name, cst.Integer, cst.SimpleString))
