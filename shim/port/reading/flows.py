"""The classes and functions that a file defines, and which expressions flow into its variables, attributes, parameters and functions' results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from shim.port.reading.source_file import Nodes, SourceFile

_SELF = ("self", "cls", "ctx")


@dataclass(frozen=True)
class Called:
    """A function of the file that a call calls, with the parameters that the call's arguments are for."""

    function: cst.FunctionDef
    parameters: tuple[cst.Name, ...]


class Definitions:
    """Resolves calls to functions of *file*, and objects to its classes. Classes share the attributes of those that they inherit from."""

    def __init__(self, file: SourceFile) -> None:
        self._file, nodes = file, file.nodes
        self._methods = {(owner, node.name.value): node for node, owner in nodes.of(cst.FunctionDef)}
        self._roots: dict[cst.ClassDef, cst.ClassDef] = {}
        # Of places that hold an object of a class; None where they may hold others.
        self._class_of: dict[Hashable, cst.ClassDef | None] = {}
        for parameter, _ in nodes.of(cst.Param):
            if parameter.annotation is not None:
                self._holds(parameter.name, self._annotated(parameter.annotation))
        for annotated, _ in nodes.of(cst.AnnAssign):
            self._holds(annotated.target, self._annotated(annotated.annotation))
        for assign, _ in nodes.of(cst.Assign):
            self._assign(assign)

    def _assign(self, node: cst.Assign) -> None:
        made = (
            self.constructed(node.value)
            if isinstance(node.value, cst.Call)
            else self._class_of.get(self.place(node.value))
        )
        for target in node.targets:
            if isinstance(target.target, (cst.Name, cst.Attribute)):
                self._holds(target.target, made)

    def _annotated(self, annotation: cst.Annotation) -> cst.ClassDef | None:
        return self.class_named(annotation.annotation)

    def _holds(self, target: cst.BaseExpression, cls: cst.ClassDef | None) -> None:
        place = self.place(target)
        if cls is not None and place is not None and self._class_of.setdefault(place, cls) is not cls:
            self._class_of[place] = None

    def place(self, node: cst.CSTNode) -> Hashable:
        """Return what is the same for all uses of a variable, or of an attribute of a class's objects; None for other expressions."""
        if isinstance(node, cst.Attribute):
            if isinstance(node.value, cst.Name) and node.value.value in _SELF:
                owner = self._file.around(node.value)
                return (
                    self.attribute(owner, node.attr.value)
                    if isinstance(owner, cst.ClassDef)
                    else (owner, node.attr.value)
                )
            cls = self.class_named(node.value)
            if cls is None and isinstance(node.value, (cst.Name, cst.Attribute)):
                cls = self._class_of.get(self.place(node.value))
            return self.attribute(cls, node.attr.value) if cls is not None else None
        if not isinstance(node, cst.Name):
            return None
        return self._file.variable(node)

    def attribute(self, cls: cst.ClassDef, name: str) -> Hashable:
        """Return the place of an attribute of *cls*."""
        return self._root(cls), name

    def class_named(self, node: cst.BaseExpression) -> cst.ClassDef | None:
        """Return the class of the file that *node* names."""
        found = self._definition(node)
        return found if isinstance(found, cst.ClassDef) else None

    def constructed(self, call: cst.Call) -> cst.ClassDef | None:
        """Return the class of the file of which *call* makes an object."""
        return self.class_named(call.func)

    def called(self, call: cst.Call) -> Called | None:
        """Return the function of the file that *call* calls: a function, a method, or a class's ``__init__``."""
        function = call.func
        cls = self.class_named(function)
        if cls is not None:
            return self._method(cls, "__init__", is_bound=True)
        found = self._definition(function)
        if isinstance(found, cst.FunctionDef):
            return Called(found, _parameters(found))
        if not isinstance(function, cst.Attribute):
            return None
        owner, is_bound = self._object(function.value)
        return self._method(owner, function.attr.value, is_bound) if owner is not None else None

    def _object(self, node: cst.BaseExpression) -> tuple[cst.ClassDef | None, bool]:
        """Return the class on which or on whose object *node* a method is called, and whether it is an object."""
        named = self.class_named(node)
        if named is not None:
            return named, False
        if isinstance(node, cst.Call):
            if isinstance(node.func, cst.Name) and node.func.value == "super":
                around = self._file.around(node.func)
                return (self._base(around), True) if isinstance(around, cst.ClassDef) else (None, True)
            return self.constructed(node), True
        if isinstance(node, cst.Name) and node.value in _SELF:
            around = self._file.around(node)
            return (around, True) if isinstance(around, cst.ClassDef) else (None, True)
        return self._class_of.get(self.place(node)), True

    def _method(self, cls: cst.ClassDef | None, name: str, is_bound: bool) -> Called | None:
        seen = set()
        while cls is not None and cls not in seen:
            seen.add(cls)
            function = self._methods.get((cls, name))
            if function is not None:
                decorators = {getattr(each.decorator, "value", "") for each in function.decorators}
                has_self = "staticmethod" not in decorators and (is_bound or "classmethod" in decorators)
                return Called(function, _parameters(function)[has_self:])
            cls = self._base(cls)
        return None

    def _definition(self, node: cst.BaseExpression) -> cst.CSTNode | None:
        return self._file.definition(node) if isinstance(node, cst.Name) else None

    def _root(self, cls: cst.ClassDef) -> cst.ClassDef:
        if cls not in self._roots:
            self._roots[cls] = cls  # where classes inherit from each other in a circle
            base = self._base(cls)
            if base is not None:
                self._roots[cls] = self._root(base)
        return self._roots[cls]

    def _base(self, cls: cst.ClassDef) -> cst.ClassDef | None:
        bases = (self.class_named(each.value) for each in cls.bases)
        return next((base for base in bases if base is not None and base is not cls), None)


def _parameters(function: cst.FunctionDef) -> tuple[cst.Name, ...]:
    found = function.params
    return tuple(each.name for each in (*found.posonly_params, *found.params, *found.kwonly_params))


EACH = -1  # a step of a path: every element
# Methods of containers, and the argument that they add.
_ADD_ONE = {"append": 0, "add": 0, "insert": 1, "setdefault": 1}
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
            for argument, name in bound(node.args, called.parameters):
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


def bound(
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
