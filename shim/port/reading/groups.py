"""What an expression is, as far as it has to do with groups: a group, a container of groups, a tuple with groups in it, or nothing; likewise for
reduce ops. And which expressions of a file are certain to be groups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import libcst as cst

from shim.port.correspondences.table import rows_with
from shim.port.reading.expressions import passed
from shim.port.reading.flows import EACH, Flows, Value
from shim.port.reading.source_file import SourceFile


@dataclass(frozen=True)
class _Each:
    """A container, all of whose elements or values are of one kind."""

    kind: _Kind


@dataclass(frozen=True)
class _Fixed:
    """A tuple or list of so many elements, each of a kind of its own."""

    kinds: tuple[_Kind, ...]


FOUND: Literal["found"] = "found"  # what is looked for
_NOTHING: Literal["nothing"] = "nothing"  # None, or an empty container
_Kind = Literal["found", "nothing"] | _Each | _Fixed | None  # None is anything else
_SAME = ("copy", "deepcopy", "dict", "frozenset", "iter", "list", "reversed", "set", "sorted", "tuple", "values")
_CONTAINERS_NAMES = """
Collection Deque Dict FrozenSet Iterable Iterator List Mapping MutableMapping Sequence Set
defaultdict deque dict frozenset list set
"""
_CONTAINERS = frozenset(_CONTAINERS_NAMES.split())


class Kinds:
    """Tells the kinds of expressions.

    *is_made* tells which expressions are what is looked for, *is_class* which annotations say so, and *known* are places that are certain to hold it.
    """

    def __init__(
        self,
        flows: Flows,
        is_made: Callable[[cst.CSTNode], bool],
        is_class: Callable[[cst.CSTNode], bool],
        known: Collection[Hashable] = (),
    ) -> None:
        self._definitions = flows.definitions
        self._flows = flows
        self._known = known
        self._is_made = is_made
        self._is_class = is_class
        self._places: dict[Hashable, _Kind] = {}

    def of(self, node: cst.CSTNode) -> _Kind:
        """Return the kind of the expression *node*, or of a function's result."""
        if self._is_made(node):
            return FOUND
        if isinstance(node, cst.FunctionDef):
            return self._of_place(node)
        if isinstance(node, cst.Name) and node.value == "None":
            return _NOTHING
        if isinstance(node, (cst.Name, cst.Attribute)):
            place = self._definitions.place(node)
            return None if place is None else self._of_place(place)
        if isinstance(node, cst.IfExp):
            return _joined((self.of(node.body), self.of(node.orelse)))
        if isinstance(node, cst.BooleanOperation):
            return _joined((self.of(node.left), self.of(node.right)))
        if isinstance(node, cst.NamedExpr):
            return self.of(node.value)
        if isinstance(node, cst.Subscript):
            return self._of_subscript(node)
        if isinstance(node, cst.Call):
            return self._of_call(node)
        return self._of_display(node)

    def _of_place(self, place: Hashable) -> _Kind:
        if place in self._known:
            return FOUND
        if place not in self._places:
            self._places[place] = _NOTHING  # while its own values are looked at
            annotation = self._flows.annotations.get(place)
            found = self._annotated(annotation) if annotation is not None else None
            if found is None:
                found = _joined(self._of_value(value) for value in self._flows.into.get(place, ()))
            self._places[place] = found
        return self._places[place]

    def _of_value(self, value: Value) -> _Kind:
        kind = self.of(value.source)
        for step in value.path:
            kind = _element(kind, step)
        if value.is_element:
            return _Each(kind) if kind is not None else None
        return kind

    def _of_display(self, node: cst.CSTNode) -> _Kind:
        if isinstance(node, (cst.List, cst.Tuple, cst.Set)):
            if any(isinstance(element, cst.StarredElement) for element in node.elements):
                return None
            kinds = tuple(self.of(element.value) for element in node.elements)
            return _Fixed(kinds) if kinds else _NOTHING
        if isinstance(node, cst.Dict):
            values = [each.value if isinstance(each, cst.DictElement) else None for each in node.elements]
            return self._all(values) if values else _NOTHING
        if isinstance(node, (cst.ListComp, cst.SetComp, cst.GeneratorExp)):
            return self._all([node.elt])
        return self._all([node.value]) if isinstance(node, cst.DictComp) else None

    def _all(self, values: Sequence[cst.BaseExpression | None]) -> _Kind:
        kind = _joined(None if value is None else self.of(value) for value in values)
        return None if kind is None else _Each(kind)

    def _of_subscript(self, node: cst.Subscript) -> _Kind:
        inner = node.slice[0].slice if len(node.slice) == 1 else None
        if isinstance(inner, cst.Slice):
            return _as_each(self.of(node.value))
        if not isinstance(inner, cst.Index):
            return None
        number = inner.value
        return _element(self.of(node.value), int(number.value, 0) if isinstance(number, cst.Integer) else EACH)

    def _of_call(self, node: cst.Call) -> _Kind:
        called = self._definitions.called(node)
        if called is not None and self._definitions.constructed(node) is None:
            return self._of_place(called.function)
        function = node.func
        name = function.attr.value if isinstance(function, cst.Attribute) else getattr(function, "value", "")
        arguments = [each.value for each in node.args if not each.star and each.keyword is None]
        container = function.value if isinstance(function, cst.Attribute) else None
        if container is None or (isinstance(container, cst.Name) and container.value == "copy"):
            container = arguments.pop(0) if arguments else None
        if container is None:
            return _NOTHING if name in ("dict", "list", "set", "tuple") and not node.args else None
        if name == "zip":
            parts = [self.of(each) for each in (container, *arguments)]
            return _Each(_Fixed(tuple(_element(part, EACH) for part in parts)))
        kind = self.of(container)
        if name in _SAME:
            return _as_each(kind)
        if name in ("items", "enumerate"):
            return _Each(_Fixed((None, _element(kind, EACH))))
        if name in ("get", "pop", "next", "setdefault"):
            return _element(kind, EACH)
        return None

    def _annotated(self, node: cst.BaseExpression) -> _Kind:
        """Return the kind that an annotation says."""
        if self._is_class(node):
            return FOUND
        if isinstance(node, cst.SimpleString):
            quoted = [each for code in self._flows.file.quoted(node) for each in code.body]
            line = quoted[0] if len(quoted) == 1 else None
            inner = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
            return self._annotated(inner.value) if isinstance(inner, cst.Expr) else None
        if isinstance(node, cst.Name) and node.value == "None":
            return _NOTHING
        if isinstance(node, cst.BinaryOperation):
            return _joined((self._annotated(node.left), self._annotated(node.right)))
        if not isinstance(node, cst.Subscript):
            return None
        name = node.value.attr.value if isinstance(node.value, cst.Attribute) else getattr(node.value, "value", "")
        kinds = [
            self._annotated(each.slice.value) if isinstance(each.slice, cst.Index) else None for each in node.slice
        ]
        if name in ("Optional", "Union", "Annotated"):
            return _joined(kinds[: 1 if name == "Annotated" else None])
        if name in ("Tuple", "tuple"):
            return _Fixed(tuple(kinds)) if not _has_ellipsis(node) else _Each(kinds[0])
        return _Each(kinds[-1]) if name in _CONTAINERS and kinds[-1] is not None else None


def _has_ellipsis(node: cst.Subscript) -> bool:
    return any(isinstance(each.slice, cst.Index) and isinstance(each.slice.value, cst.Ellipsis) for each in node.slice)


def _element(kind: _Kind, step: int) -> _Kind:
    """Return the kind of an element: the one of this number, or any of them."""
    if isinstance(kind, _Each):
        return kind.kind
    if isinstance(kind, _Fixed):
        return kind.kinds[step] if 0 <= step < len(kind.kinds) else _joined(kind.kinds)
    return _NOTHING if kind == _NOTHING else None


def _as_each(kind: _Kind) -> _Kind:
    return _Each(_joined(kind.kinds)) if isinstance(kind, _Fixed) else kind


def _joined(kinds: Iterable[_Kind]) -> _Kind:
    """Return the kind of what is one of several: theirs, if all that are something agree."""
    found: set[_Kind] = {kind for kind in kinds if kind != _NOTHING}
    if len(found) > 1:
        found = {_as_each(kind) for kind in found}
    return found.pop() if len(found) == 1 else (None if found else _NOTHING)


GROUP_CLASSES = frozenset(("torch.distributed.ProcessGroup", "paddle.distributed.collective.Group"))
_MAKERS = frozenset(
    (
        "paddle.distributed.collective._get_default_group",
        "paddle.distributed.get_group",
        "paddle.distributed.new_group",
        "torch.distributed._get_default_group",
        "torch.distributed.new_group",
        "torch.distributed.split_group",
    )
)
WORLDS = frozenset(
    (
        "mindspore.communication.GlobalComm.WORLD_COMM_GROUP",
        "mindspore.communication.HCCL_WORLD_COMM_GROUP",
        "mindspore.communication.MCCL_WORLD_COMM_GROUP",
        "mindspore.communication.NCCL_WORLD_COMM_GROUP",
        "torch.distributed.GroupMember.WORLD",
        "torch.distributed.group.WORLD",
    )
)


class Groups:
    """Knows the groups of *file*.

    An expression is one if it is made as one, or if its variable or attribute is: by what is assigned to it, its annotation, or by being passed as one
    to a collective. Assignments, parameters and results of the file's own functions, attributes, and elements of containers are followed.
    """

    def __init__(self, file: SourceFile, api: str, flows: Flows) -> None:
        self._file = file
        self._api = api
        self._known: set[Hashable] = set()
        self._flows = flows
        for assign, _ in file.nodes.of(cst.Assign):
            for target in assign.targets if self._is_made(assign.value) else ():
                self._add(target.target)
        for call, _ in file.nodes.of(cst.Call):
            self._add_passed(call)
        self._follow_backwards()
        self._kinds = Kinds(flows, self._is_made, self._is_class, self._known)

    def __contains__(self, node: cst.CSTNode) -> bool:
        """Tell whether the expression *node* is certain to be a group."""
        return isinstance(node, cst.BaseExpression) and self._kinds.of(node) is FOUND

    def _add_passed(self, node: cst.Call) -> None:
        """Note what is passed as a group to a function of the API."""
        if not isinstance(node.func, (cst.Name, cst.Attribute)):
            return
        name = self._file.imported(node.func)
        for _, form in rows_with(name, self._api) if name else ():
            for value, parameter in passed(node, form):
                if parameter.role == "group":
                    self._add(value)

    def _is_made(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Call) and isinstance(node.func, (cst.Name, cst.Attribute)):
            return self._file.imported(node.func) in _MAKERS
        return isinstance(node, (cst.Name, cst.Attribute)) and self._file.imported(node) in WORLDS

    def _is_class(self, node: cst.CSTNode) -> bool:
        return isinstance(node, (cst.Name, cst.Attribute)) and self._file.imported(node) in GROUP_CLASSES

    def _add(self, node: cst.CSTNode) -> None:
        place = self._flows.definitions.place(node)
        if place is not None:
            self._known.add(place)

    def _follow_backwards(self) -> None:
        """Have what flows into a group be one, too: a parameter that is assigned to ``self.group``, an argument that a function passes to a collective."""
        waiting = list(self._known)
        while waiting:
            for value in self._flows.into.get(waiting.pop(), ()):
                for each in () if value.path or value.is_element else _choices(value.source):
                    place = self._flows.definitions.place(each)
                    if place is not None and place not in self._known:
                        self._known.add(place)
                        waiting.append(place)


def _choices(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the variables and attributes of which *node* is one."""
    if isinstance(node, cst.IfExp):
        return [*_choices(node.body), *_choices(node.orelse)]
    if isinstance(node, cst.BooleanOperation):
        return [*_choices(node.left), *_choices(node.right)]
    return [node] if isinstance(node, (cst.Name, cst.Attribute)) else []
