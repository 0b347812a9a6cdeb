"""Find what shares tensors with an expression that stays: it stays, too, so that no line computes with tensors of two frameworks."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence

import libcst as cst

from shim.port.reading.evidence import CollectiveCallers, outermost
from shim.port.reading.flows import bound
from shim.port.reading.source_file import Owner, below
from shim.port.rules.port import Port

_TENSORS = ("tensor", "tensors")
_SMALL = (
    cst.Expr,
    cst.Assign,
    cst.AnnAssign,
    cst.AugAssign,
    cst.Return,
    cst.Raise,
    cst.Assert,
    cst.WithItem,
    cst.Param,
)


class Wholes:
    """Knows the parts of the file that share tensors: statements, the heads of compound ones, parameters, annotations of results, classes of autograd."""

    def __init__(self, port: Port, callers: CollectiveCallers) -> None:
        self._port, self._kinds, self._evidence = port, port.tensors, port.tensors.evidence
        self._called = port.flows.definitions.called
        self._joined: dict[Hashable, Hashable] = {}
        self._inside = callers.functions
        self._passed: set[Hashable] = set()  # parameters that get tensors
        nodes = port.file.nodes
        for call, _ in nodes.of(cst.Call):
            self._passed.update(variable for variable, is_tensor in self._arguments(call) if is_tensor)
        self._parts: list[tuple[list[cst.CSTNode], Owner]]
        self._parts = [([node], owner) for kind in _SMALL for node, owner in nodes.of(kind)]
        self._parts += [([node.test], owner) for node, owner in nodes.of(cst.If)]
        self._parts += [([node.test], owner) for node, owner in nodes.of(cst.While)]
        self._parts += [([node.target, node.iter], owner) for node, owner in nodes.of(cst.For)]
        self._parts += [([node.returns], node) for node, _ in nodes.of(cst.FunctionDef) if node.returns is not None]
        self._parts += [([node], owner) for node, owner in nodes.of(cst.Decorator)]
        for nodes_of_part, owner in self._parts:
            for key in self._keys(nodes_of_part, owner):
                self._join(nodes_of_part[0], key)
            for cls in nodes.outer(owner):
                if cls in callers.classes:
                    self._join(nodes_of_part[0], cls)
        for statement, _ in nodes.of(cst.With):
            self._join_all_in(statement, statement.items)
        for function, _ in nodes.of(cst.FunctionDef):
            self._join_all_in(function, function.decorators)

    def _join_all_in(self, statement: cst.CSTNode, heads: Sequence[cst.CSTNode]) -> None:
        """Join what is in *statement* with those of its *heads* that name something of the framework, such as ``no_grad``."""
        named = [each for each in heads if any(self._port.file.imported(node) is not None for node in below(each))]
        start, end = self._port.file.span(statement)
        for part, _ in self._parts if named else ():
            if start <= self._port.file.span(part[0]).start < end:
                self._join(part[0], named[0])

    def with_any(self, nodes: Iterable[cst.CSTNode]) -> Collection[cst.CSTNode]:
        """Return the parts that share tensors with one in which one of *nodes* is, and their classes of autograd."""
        spans, span = [self._port.file.span(node) for node in nodes], self._port.file.span
        holding = {
            self._root(part[0])
            for part, _ in self._parts
            for each in part
            if any(span(each).start <= start and end <= span(each).end for start, end in spans)
        }
        found = {each for part, _ in self._parts if self._root(part[0]) in holding for each in part}
        return found | {each for each in self._joined if isinstance(each, cst.ClassDef) and self._root(each) in holding}

    def told(self, node: cst.CSTNode) -> str:
        """Return what the entry of *node* says of the other lines that stay because of it."""
        place = self._port.file.place
        lines = sorted({place(each)[0] for each in self.with_any([node])} - {place(node)[0]})
        return (
            f" Till then, what shares tensors with it stays, too: line {', '.join(map(str, lines))}." if lines else ""
        )

    def _keys(self, part: Sequence[cst.CSTNode], owner: cst.CSTNode | None) -> Iterator[Hashable]:
        """Yield what the *part* of the function *owner* shares with others: variables that may hold tensors, and results of functions."""
        has_tensor = False
        for node in (each for piece in part for each in below(piece)):
            if isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)) and self._may_be_tensor(node):
                has_tensor = True
                yield self._evidence.variable(node)
            elif isinstance(node, cst.Call):
                yield from (variable for variable, is_tensor in self._arguments(node) if is_tensor)
                if (called := self._called(node)) is not None and called.function in self._inside:
                    yield "result", called.function
        if isinstance(part[0], cst.Annotation) or (isinstance(part[0], cst.Return) and has_tensor):
            yield "result", owner

    def _arguments(self, call: cst.Call) -> Iterator[tuple[Hashable, bool]]:
        """Yield the parameters of the file's own functions to which *call* passes something, and whether that is a tensor."""
        called = self._called(call)
        if called is not None and outermost([called.function]) in self._inside:
            for value, name in bound(call.args, called.parameters):
                is_tensor = self._kinds.of(value) in _TENSORS or self._kinds.of(name) in _TENSORS
                yield self._evidence.variable(name), is_tensor

    def _may_be_tensor(self, node: cst.CSTNode) -> bool:
        variable, kind = self._evidence.variable(node), self._kinds.of(node)
        if variable is None or kind not in (*_TENSORS, None):
            return False
        ways = {how for how, _ in self._evidence.assignments(variable)} if kind is None else set()
        return kind in _TENSORS or variable in self._passed or bool(ways & {"value", "element", "added"})

    def _root(self, key: Hashable) -> Hashable:
        while (other := self._joined.setdefault(key, key)) != key:
            key = other
        return key

    def _join(self, one: Hashable, other: Hashable) -> None:
        self._joined[self._root(one)] = self._root(other)
