"""Which expressions of a file flow into its variables, attributes, parameters and functions' results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from shim.port.reading.definitions import Definitions
from shim.port.reading.source_file import Nodes, SourceFile

EACH = -1  # a step of a path: every element
_ADD_ONE = {
    "append": 0,
    "add": 0,
    "insert": 1,
    "setdefault": 1,
}  # methods of containers, and the argument that they add
_ADD_ALL = ("extend", "update")


@dataclass(frozen=True)
class Value:
    """What an expression, or a call of a function, gives: itself if *path* is empty, else the elements to which the steps of *path* lead.

    ``is_element`` if it becomes one of a container's elements.
    """

    source: cst.BaseExpression | cst.FunctionDef
    path: tuple[int, ...] = ()
    is_element: bool = False


class Flows:
    """``into`` has the values of each place, ``annotations`` the annotation where it has one.

    A place is what ``Definitions.place`` returns, or a function definition for its result.
    """

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        nodes = file.nodes
        definitions = self.definitions = Definitions(file)
        self.into: dict[Hashable, list[Value]] = defaultdict(list)
        self.annotations: dict[Hashable, cst.BaseExpression] = {}
        for function, owner in nodes.of(cst.FunctionDef):
            if function.returns is not None:
                self.annotations[function] = function.returns.annotation
            if isinstance(owner, cst.ClassDef) and _is_property(function):  # read like an attribute
                self.into[definitions.attribute(owner, function.name.value)].append(Value(function))
        for returned, owner in nodes.of(cst.Return):
            if returned.value is not None:
                self.into[owner].append(Value(returned.value))
        for parameter, _ in nodes.of(cst.Param):
            self._add_parameter(parameter)
        self._add_assignments(nodes)
        for call, _ in nodes.of(cst.Call):
            self._add_call(call)

    def _add_parameter(self, node: cst.Param) -> None:
        place = self.definitions.place(node.name)
        if place is not None and node.annotation is not None:
            self.annotations[place] = node.annotation.annotation
        if place is not None and node.default is not None:
            self.into[place].append(Value(node.default))

    def _add_assignments(self, nodes: Nodes) -> None:
        for assign, owner in nodes.of(cst.Assign):
            for target in assign.targets:
                self._assign(target.target, Value(assign.value), owner)
        for annotated, owner in nodes.of(cst.AnnAssign):
            for place in self._places(annotated.target, owner):
                self.annotations[place] = annotated.annotation.annotation
            if annotated.value is not None:
                self._assign(annotated.target, Value(annotated.value), owner)
        for added, owner in nodes.of(cst.AugAssign):
            self._assign(added.target, Value(added.value), owner)
        for named, owner in nodes.of(cst.NamedExpr):
            self._assign(named.target, Value(named.value), owner)
        for loop, owner in nodes.of(cst.For):
            self._assign(loop.target, Value(loop.iter, (EACH,)), owner)
        for part, owner in nodes.of(cst.CompFor):
            self._assign(part.target, Value(part.iter, (EACH,)), owner)

    def _add_call(self, node: cst.Call) -> None:
        function = node.func
        if isinstance(function, cst.Attribute) and isinstance(function.value, (cst.Name, cst.Attribute)):
            added = _ADD_ONE.get(function.attr.value)
            place = self.definitions.place(function.value)
            if place is not None and added is not None and len(node.args) > added:
                self.into[place].append(Value(node.args[added].value, is_element=True))
            elif place is not None and function.attr.value in _ADD_ALL and node.args:
                self.into[place].append(Value(node.args[0].value))
        called = self.definitions.called(node)
        if called is not None:
            for argument, name in _bound(node.args, called.parameters):
                self.into[self.definitions.place(name)].append(Value(argument))
        elif (cls := self.definitions.constructed(node)) is not None:  # a dataclass has no __init__ in the source
            for each in node.args:
                if each.keyword is not None:
                    self.into[self.definitions.attribute(cls, each.keyword.value)].append(Value(each.value))

    def _assign(self, target: cst.BaseExpression, value: Value, owner: cst.CSTNode | None) -> None:
        if isinstance(target, (cst.Tuple, cst.List)):
            for number, element in enumerate(target.elements):
                if isinstance(element, cst.StarredElement):
                    break
                self._assign(element.value, Value(value.source, (*value.path, number)), owner)
        elif isinstance(target, cst.Subscript) and not value.path:
            for place in self._places(target.value, owner):
                self.into[place].append(Value(value.source, is_element=True))
        else:
            for place in self._places(target, owner):
                self.into[place].append(value)

    def _places(self, target: cst.BaseExpression, owner: cst.CSTNode | None) -> Iterator[Hashable]:
        """Yield the place of *target*; for a name in a class body, that of the class's attribute, too."""
        place = self.definitions.place(target)
        if place is not None:
            yield place
        if isinstance(target, cst.Name) and isinstance(owner, cst.ClassDef):
            yield self.definitions.attribute(owner, target.value)


def _is_property(node: cst.FunctionDef) -> bool:
    names = [each.decorator.value for each in node.decorators if isinstance(each.decorator, cst.Name)]
    return bool({"property", "cached_property"} & {*names})


def _bound(
    arguments: Sequence[cst.Arg], parameters: Sequence[cst.Name]
) -> Iterator[tuple[cst.BaseExpression, cst.Name]]:
    """Yield the arguments of a call whose parameters are certain."""
    by_name = {name.value: name for name in parameters}
    for position, argument in enumerate(arguments):
        if argument.star:
            return
        if argument.keyword is not None:
            if argument.keyword.value in by_name:
                yield argument.value, by_name[argument.keyword.value]
        elif position < len(parameters):
            yield argument.value, parameters[position]
