"""Where a module uses an API: found with the standard library alone, so that the port is not compared with itself."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

_PRIMITIVES = [
    "AllGather",
    "AllReduce",
    "AlltoAll",
    "AlltoAllV",
    "Barrier",
    "Broadcast",
    "CollectiveGather",
    "CollectiveScatter",
    "NeighborExchange",
    "NeighborExchangeV2",
    "Receive",
    "Reduce",
    "ReduceOp",
    "ReduceScatter",
    "Send",
]
_MODULES = {
    "torch": ("torch.distributed",),
    "paddle": ("paddle.distributed",),
    "mindspore": (
        "mindspore.mint.distributed",
        "mindspore.communication",
        "mindspore.ops.communication",
        *(f"mindspore.{module}.{name}" for module in ("ops", "ops.operations") for name in _PRIMITIVES),
    ),
}


@dataclass(frozen=True)
class Site:
    """One use of a name of the API. ``first`` and ``last`` are the lines of its statement; ``keywords`` are those of the call, if it is one."""

    name: str
    first: int
    last: int
    keywords: tuple[str, ...] = ()


def variables_of(tree: ast.Module, framework: str) -> set[str]:
    """Return the names of variables to which a name of the API is assigned: their calls are uses of it too."""
    return _walked(tree, framework).variables


def sites_of(tree: ast.Module, framework: str) -> list[Site]:
    """Return the uses of *framework*'s collective API in *tree*, imports and annotations in quotes included."""
    return _walked(tree, framework).found


def _walked(tree: ast.Module, framework: str) -> _Walk:
    walk = _Walk(framework, tree)
    walk.visit(tree)
    return walk


class _Walk(ast.NodeVisitor):
    """Follows scopes: a name means what the innermost function that binds it imports by it, and nothing where it is bound otherwise."""

    def __init__(self, framework: str, tree: ast.Module) -> None:
        self.found: list[Site] = []
        self._quoted = {id(part) for annotation in _annotations(tree) for part in ast.walk(annotation)}
        self.variables: set[str] = set()
        self._modules = _MODULES[framework]
        self._scopes: list[Mapping[str, str | None]] = []
        self._lines = (0, 0)

    def visit(self, node: ast.AST) -> None:
        lines = self._lines
        if isinstance(node, ast.stmt):
            ends = [part.end_lineno or part.lineno for part in _parts(node)]
            self._lines = node.lineno, max([node.lineno, *ends])
        is_scope = isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        if is_scope:
            self._scopes.append(_bound(node))
        super().visit(node)
        if is_scope:
            self._scopes.pop()
        self._lines = lines

    def visit_Import(self, node: ast.Import) -> None:
        self._add_import(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self._add_import(node)

    def _add_import(self, node: ast.Import | ast.ImportFrom) -> None:
        lines = node.lineno, node.end_lineno or node.lineno
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else _imported_by(node).values()
        self.found += [Site(f"import {name}", *lines) for name in names if self._is_of_api(name)]

    def visit_Assign(self, node: ast.Assign) -> None:
        before = len(self.found)
        self.visit(node.value)
        if len(self.found) > before and isinstance(node.value, (ast.Name, ast.Attribute)):
            self.variables |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        for target in node.targets:
            self.visit(target)

    def visit_Call(self, node: ast.Call) -> None:
        self._add(node.func, tuple(keyword.arg for keyword in node.keywords if keyword.arg))
        for child in (*node.args, *node.keywords):
            self.visit(child)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._add(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and id(node) in self._quoted:
            with suppress(SyntaxError):  # the text of a Literal
                self.visit(ast.parse(node.value, mode="eval").body)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._add(node)

    def _add(self, node: ast.expr, keywords: tuple[str, ...] = ()) -> None:
        parts: list[str] = []
        part = node
        while isinstance(part, ast.Attribute):
            parts.append(part.attr)
            part = part.value
        if not isinstance(part, ast.Name):
            self.visit(part) if part is not node else self.generic_visit(node)
            return
        meant = next((scope[part.id] for scope in reversed(self._scopes) if part.id in scope), None)
        if meant is not None and self._is_of_api(name := ".".join((meant, *reversed(parts)))):
            self.found.append(Site(name, *self._lines, keywords))

    def _is_of_api(self, name: str) -> bool:
        return any(name == module or name.startswith(f"{module}.") for module in self._modules)


def _annotations(tree: ast.Module) -> Iterator[ast.expr]:
    """Give the annotations, in which names may stand in quotes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found = node.returns
        else:
            found = node.annotation if isinstance(node, (ast.arg, ast.AnnAssign)) else None
        if found is not None:
            yield found


def _bound(scope: ast.AST) -> Mapping[str, str | None]:
    """Return what *scope* binds, functions in it left out: the full name of an import, None for all else."""
    found: dict[str, str | None] = {}
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(_imported_by(node))
        elif isinstance(node, ast.arg):
            found.setdefault(node.arg, None)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.setdefault(node.id, None)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return found


def _imported_by(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names if not node.level}
    bound = {alias.asname: alias.name for alias in node.names if alias.asname}
    plain = [alias.name for alias in node.names if not alias.asname]
    return bound | {name.partition(".")[0]: name.partition(".")[0] for name in plain}


def _parts(node: ast.AST) -> Iterator[ast.expr]:
    """Give the expressions of a statement, those of the statements in its body left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield from _parts(child)


def comments_of(text: str) -> Counter[str]:
    """Return the comments of *text*, counted."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)
