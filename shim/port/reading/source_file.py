"""A parsed Python file: its nodes by type, where they are in the text, and which names of an API its expressions mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeVar

import libcst as cst
from libcst import metadata

from shim.port.apis import Api

Owner = cst.ClassDef | cst.FunctionDef | cst.Lambda | None
_LAYOUT = (
    cst.BaseParenthesizableWhitespace,
    cst.Comma,
    cst.EmptyLine,
    cst.LeftParen,
    cst.RightParen,
    cst.TrailingWhitespace,
)
_Node = TypeVar("_Node", bound=cst.CSTNode)


class Nodes:
    """The nodes below *module*, layout left out, without the slow visits of LibCST, which make each node anew."""

    def __init__(self, module: cst.Module) -> None:
        self._owners: dict[cst.CSTNode, Owner] = {}
        self._by_type: Mapping[type[cst.CSTNode], list[tuple[cst.CSTNode, Owner]]] = defaultdict(list)
        self._add(module)

    def of(self, kind: type[_Node]) -> Iterator[tuple[_Node, Owner]]:
        """Yield the nodes of this very type, outer ones first, each with the class, function or lambda around it."""
        yield from self._by_type.get(kind, ())  # type: ignore[misc]  # by their type

    def outer(self, owner: Owner) -> list[cst.ClassDef | cst.FunctionDef]:
        """Return *owner*, which is around a node, and the classes and functions around that, outer ones first; lambdas are left out."""
        found = []
        while owner is not None:
            found += [owner] if not isinstance(owner, cst.Lambda) else []
            owner = self._owners[owner]
        return found[::-1]

    def _add(self, module: cst.Module) -> None:
        waiting: list[tuple[cst.CSTNode, Owner]] = [(module, None)]
        by_type = self._by_type
        while waiting:
            node, owner = waiting.pop()
            by_type[type(node)].append((node, owner))
            if isinstance(node, (cst.ClassDef, cst.FunctionDef, cst.Lambda)):
                self._owners[node] = owner
                owner = node
            found: list[tuple[cst.CSTNode, Owner]] = []
            for name in _parts(type(node)):
                value = getattr(node, name)
                if isinstance(value, cst.CSTNode):
                    if not isinstance(value, _LAYOUT):
                        found.append((value, owner))
                elif isinstance(value, (list, tuple)):
                    found += [
                        (each, owner)
                        for each in value
                        if isinstance(each, cst.CSTNode) and not isinstance(each, _LAYOUT)
                    ]
            found.reverse()
            waiting += found


@cache
def _parts(kind: type[cst.CSTNode]) -> Sequence[str]:
    """Return the fields of a type of node in which other nodes are."""
    without = ("lpar", "rpar", "header", "footer", "leading_lines", "lines_after_decorators", "comma")
    return [each.name for each in fields(kind) if each.name not in without and "whitespace" not in each.name]


SOMETHING_ELSE = "something else"  # than an import binds a name


class Span(NamedTuple):
    """Bytes of the text, from ``start`` to before ``end``."""

    start: int
    end: int


class Imported(NamedTuple):
    """``statement`` binds ``local`` to what has the full name ``name``."""

    local: str
    name: str
    statement: cst.Import | cst.ImportFrom


def below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield *node* and all that is in it, outer nodes first. For a whole module this is slow."""
    yield node
    for each in node.children:
        yield from below(each)


class SourceFile:
    """One file of a program that uses *api*. Raises libcst.ParserSyntaxError for what is no Python 3."""

    def __init__(self, text: str, api: Api) -> None:
        self.api = api
        self.text = text.encode()
        wrapper = metadata.MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        self.module = wrapper.module
        self._scopes = dict(wrapper.resolve(metadata.ScopeProvider))
        self._spans = dict(wrapper.resolve(metadata.ByteSpanPositionProvider))
        self._quoted: dict[cst.SimpleString, cst.Module | None] = {}
        self._lines = [0, *(at + 1 for at, byte in enumerate(self.text) if byte == ord("\n"))]

    def span(self, node: cst.CSTNode) -> Span:
        """Return where *node* is, without brackets around it."""
        found = self._spans[node]
        return Span(found.start, found.start + found.length)

    def outer_span(self, node: cst.BaseExpression) -> Span:
        """Return where *node* is, with the brackets around it."""
        start, end = self.span(node)
        return Span(start - self._bytes(node.lpar), end + self._bytes(node.rpar))

    def _bytes(self, nodes: Sequence[cst.CSTNode]) -> int:
        return sum(len(self.module.code_for_node(node).encode()) for node in nodes)

    def code(self, node: cst.CSTNode) -> str:
        """Return the source of *node*, without brackets around it."""
        start, end = self.span(node)
        return self.text[start:end].decode()

    def place(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return the line and the column of *node*, from 1, the column in characters."""
        start = self.span(node).start
        low, high = 0, len(self._lines)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._lines[middle] <= start else (low, middle)
        return low + 1, len(self.text[self._lines[low] : start].decode()) + 1

    def indent(self, at: int) -> str:
        """Return the blanks with which the line of *at* begins."""
        begin = max(self.text.rfind(b"\n", 0, at), self.text.rfind(b"\r", 0, at)) + 1
        line = self.text[begin:at].decode()
        return line[: len(line) - len(line.lstrip())]

    def indented(self, start: int, lines: Sequence[str]) -> str:
        """Return *lines* as they stand below each other where a statement starts at *start*; beside each other where that shares its line."""
        begin = max(self.text.rfind(b"\n", 0, start), self.text.rfind(b"\r", 0, start)) + 1
        before = self.text[begin:start].decode()
        if before.strip():
            return "; ".join(lines)
        return (self.module.default_newline + before).join(lines)

    def scope(self, node: cst.CSTNode) -> metadata.Scope | None:
        """Return the scope in which *node* is, None for the parts of a name."""
        return self._scopes.get(node)

    def variable(self, name: cst.Name) -> Hashable:
        """Return what is the same for all uses of the variable *name*; None where nothing binds it."""
        scope = self.scope(name)
        return frozenset(scope[name.value]) if scope is not None and scope[name.value] else None

    def around(self, name: cst.Name) -> Hashable:
        """Return the class in which *name* is; the file's scope where there is none."""
        scope = self.scope(name)
        while scope is not None and not isinstance(scope, (metadata.ClassScope, metadata.GlobalScope)):
            scope = scope.parent
        return scope.node if isinstance(scope, metadata.ClassScope) else scope

    def quoted(self, annotation: cst.CSTNode) -> list[cst.Module]:
        """Return the code of each string in *annotation*, where it is Python; its nodes have their places and scopes as if it stood there without quotes."""
        strings = [node for node in below(annotation) if isinstance(node, cst.SimpleString)]
        for node in strings:
            if node not in self._quoted:
                self._quoted[node] = self._parsed(node)
        return [code for node in strings if (code := self._quoted[node]) is not None]

    def _parsed(self, node: cst.SimpleString) -> cst.Module | None:
        scope, text = self._scopes.get(node), node.raw_value
        if scope is None or node.prefix or "\\" in text or "\n" in text or text != text.strip():
            return None
        try:
            wrapper = metadata.MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        except cst.ParserSyntaxError:
            return None
        first = self.span(node).start + len(node.quote)
        for each, place in wrapper.resolve(metadata.ByteSpanPositionProvider).items():
            self._spans[each] = metadata.CodeSpan(first + place.start, place.length)
            self._scopes[each] = scope
        return wrapper.module

    def imported(self, node: cst.CSTNode) -> str | None:
        """Return the canonical path of the name of the API that the name or attribute *node* means by imports alone.

        Several imports, as in try and except, have to agree. Names of the framework that are none of the API are returned, too; None for all else.
        ``getattr`` of a module of the API and a literal name is this name.
        """
        if isinstance(node, cst.Call):
            return self._by_literal(node)
        names = self.imports_meant(node)
        name = names[0] if len(names) == 1 else None
        return name if name is not None and f"{name}.".startswith(f"{self.api.framework}.") else None

    def _by_literal(self, node: cst.Call) -> str | None:
        asked = literal_name(node)
        module = self.imported(node.args[0].value) if asked is not None and self.code(node.func) == "getattr" else None
        return (
            self.api.canonical(f"{module}.{asked}") if module is not None and self.api.is_collective(module) else None
        )

    def imports_meant(self, node: cst.CSTNode) -> list[str]:
        """Return the canonical paths of all that the name or attribute *node* may mean; none where no import binds it.

        Where other statements bind it too, SOMETHING_ELSE is the last, unless all that they assign is None, as where an import has failed.
        """
        scope, first = self._scopes.get(node), first_name(node)
        if scope is not None and first is not None and first.value == self.api.framework and self.is_unbound(first):
            return [self.api.canonical(self.code(node))]
        if scope is None or first is None or first.value not in self._bound_by_imports:
            return []
        names, others = set(), False
        for found in scope.get_qualified_names_for(node):
            if found.source is metadata.QualifiedNameSource.IMPORT:
                names.add(self.api.canonical(found.name))
            else:
                others = True
        if others and names and not self._is_none_otherwise(node, scope):
            return [*sorted(names), SOMETHING_ELSE]
        return sorted(names)

    @cached_property
    def _bound_by_imports(self) -> frozenset[str]:
        """The names that imports bind in any scope. Of others a file has thousands, and to look up what each means takes long."""
        scopes = {scope for scope in self._scopes.values() if scope is not None}
        bound = (assignment for scope in scopes for assignment in scope.assignments)
        return frozenset(each.name for each in bound if isinstance(each, metadata.ImportAssignment))

    def _is_none_otherwise(self, node: cst.CSTNode, scope: metadata.Scope) -> bool:
        """Tell whether all that binds the first name of *node* are imports and assignments of None."""
        first = first_name(node)
        if first is None:
            return False
        for assignment in scope[first.value]:
            if not isinstance(assignment, metadata.ImportAssignment):
                value = self._assigned.get(getattr(assignment, "node", None))
                if not isinstance(value, cst.Name) or value.value != "None":
                    return False
        return True

    def is_unbound(self, name: cst.Name) -> bool:
        """Tell whether only ``import *`` can bind *name*."""
        scope = self._scopes.get(name)
        return bool(self.stars) and scope is not None and not scope[name.value]

    @cached_property
    def stars(self) -> Sequence[cst.ImportFrom]:
        """The statements that import all names of a module."""
        return [node for node, _ in self.nodes.of(cst.ImportFrom) if isinstance(node.names, cst.ImportStar)]

    @cached_property
    def framework(self) -> str | None:
        """What the file calls the framework's own module; None where it does not have it."""
        known = [each.local for each in self.top_level_imports if each.name == self.api.framework]
        return known[0] if known else self.api.framework if self.stars and self.api.framework in self.words else None

    @cached_property
    def always_run(self) -> frozenset[cst.CSTNode]:
        """The statements of the module itself, which are in no other statement."""
        lines = [line for line in self.module.body if isinstance(line, cst.SimpleStatementLine)]
        return frozenset(statement for line in lines for statement in line.body)

    @cached_property
    def _globals(self) -> metadata.Scope | None:
        return next((scope.globals for scope in self._scopes.values() if scope is not None), None)

    @cached_property
    def top_level_imports(self) -> Sequence[Imported]:
        """What the file's top level imports by a name of its own, unlike ``import torch.distributed``, which binds ``torch``."""
        found = []
        for each in self._globals.assignments if self._globals is not None else ():
            statement = getattr(each, "node", None)
            if isinstance(statement, (cst.Import, cst.ImportFrom)) and _has_own_name(statement, each.name):
                found += [Imported(each.name, name.name, statement) for name in each.get_qualified_names_for(each.name)]
        return sorted(found, key=lambda each: self.span(each.statement).start)

    def uses_of(self, local: str) -> int:
        """Return how often the file itself uses what its top level imports as *local*: where it does not, others may import it from here."""
        bound = self._globals[local] if self._globals is not None else ()
        return max((len(assignment.references) for assignment in bound), default=0)

    def imports_of(self, name: cst.Name) -> list[cst.Import | cst.ImportFrom]:
        """Return the statements that bind the local *name*."""
        scope = self._scopes.get(name)
        if scope is None:
            return []
        if name.value == self.api.framework and self.is_unbound(name):
            return [*self.stars]
        bound = [each.node for each in scope[name.value] if isinstance(each, metadata.ImportAssignment)]
        statements = [node for node in bound if isinstance(node, (cst.Import, cst.ImportFrom))]
        return sorted(statements, key=lambda node: self.span(node).start)

    def values_of(self, name: cst.Name) -> list[cst.BaseExpression] | None:
        """Return the expressions that are assigned to the local variable *name*; None where something else binds it, or nothing does."""
        scope = self._scopes.get(name)
        if scope is None:
            return None
        values = []
        for assignment in scope[name.value]:
            value = self._assigned.get(getattr(assignment, "node", None))
            if value is None:
                return None
            values.append(value)
        return values or None

    def references(self, name: cst.Name) -> int:
        """Return how often the variable *name* is used, whatever binds it."""
        scope = self._scopes.get(name)
        return max((len(each.references) for each in scope[name.value]), default=0) if scope is not None else 0

    def definition(self, name: cst.Name) -> cst.ClassDef | cst.FunctionDef | None:
        """Return the class or function that the variable *name* is by its definition; None where anything else binds it, too."""
        scope = self._scopes.get(name)
        bound = [getattr(each, "node", None) for each in scope[name.value]] if scope is not None else []
        return bound[0] if len(bound) == 1 and isinstance(bound[0], (cst.ClassDef, cst.FunctionDef)) else None

    @cached_property
    def _assigned(self) -> dict[Any, cst.BaseExpression]:
        """The expression assigned to each variable in a plain assignment."""
        found: dict[Any, cst.BaseExpression] = {}
        for node, _ in self.nodes.of(cst.Assign):
            found.update(pair for target in node.targets for pair in paired(target.target, node.value))
        for annotated, _ in self.nodes.of(cst.AnnAssign):
            if isinstance(annotated.target, cst.Name) and annotated.value is not None:
                found[annotated.target] = annotated.value
        return found

    @cached_property
    def nodes(self) -> Nodes:
        """The nodes of the module by their type."""
        return Nodes(self.module)

    @cached_property
    def words(self) -> frozenset[str]:
        """All names of variables anywhere in the file, whatever their scope."""
        others = {id(node.attr) for node, _ in self.nodes.of(cst.Attribute)}
        others |= {id(node.keyword) for node, _ in self.nodes.of(cst.Arg)}
        return frozenset(node.value for node, _ in self.nodes.of(cst.Name) if id(node) not in others)


def literal_name(call: cst.Call) -> str | None:
    """Return the name that ``getattr(x, "name")`` or its like asks for; None where it is no literal."""
    if len(call.args) not in (2, 3) or any(each.star or each.keyword is not None for each in call.args):
        return None
    value = call.args[1].value
    is_name = isinstance(value, cst.SimpleString) and not value.prefix and value.raw_value.isidentifier()
    return value.raw_value if isinstance(value, cst.SimpleString) and is_name else None


def paired(target: cst.BaseExpression, value: cst.BaseExpression) -> Iterator[tuple[cst.Name, cst.BaseExpression]]:
    """Yield the names that an assignment of *value* to *target* binds, each with its value: ``a, b = 1, 2`` binds two."""
    if isinstance(target, cst.Name):
        yield target, value
    elif isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, (cst.Tuple, cst.List)):
        parts = [*target.elements, *value.elements]
        if len(target.elements) == len(value.elements) and all(isinstance(part, cst.Element) for part in parts):
            for one, other in zip(target.elements, value.elements, strict=True):
                yield from paired(one.value, other.value)


def first_name(node: cst.CSTNode) -> cst.Name | None:
    """Return the name that the dotted name *node* starts with; None where it is no dotted name."""
    while isinstance(node, cst.Attribute):
        node = node.value
    return node if isinstance(node, cst.Name) else None


def _has_own_name(statement: cst.Import | cst.ImportFrom, name: str) -> bool:
    """Tell whether *statement* binds *name* itself, and not the first package of a dotted path."""
    if isinstance(statement, cst.ImportFrom):
        return True
    names = (alias.asname.name if alias.asname is not None else alias.name for alias in statement.names)
    return any(isinstance(each, cst.Name) and each.value == name for each in names)
