"""Which functions of ``shim.core.calls`` a definition comes to call, as its source says.

A name that a body uses is followed to the function it stands for, through imports at the top of a module or in a body,
into the frontends and core. Of a class that is made, the constructor is followed, and what calling it does; of a private one
that is made or named, everything; of one whose method is named, that method; of one that is asked about, every method. Annotations are not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from checks.source import Definition, Module

_CALLS = "shim.core.calls"
_NO_COLLECTIVE = {"refuse", "refused", "tell"}
_CALLED_OTHERWISE = {"received": "receive"}  # another call of the same collective
_Place = tuple[Module, ast.AST]  # something in a module


def collectives_of(by_name: Mapping[str, Module], module: Module, node: Definition) -> set[str]:
    """Return the names of the calls of core that *node*, a function or class of *module*, can come to."""
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[_Place] = [(module, child) for child in _parts(node)]
    if isinstance(node, ast.ClassDef):
        for base in node.bases:
            waiting += _whole_class(by_name, module, base)
    while waiting:
        here, part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        for there, target in _used(by_name, here, part):
            if there.name == _CALLS and isinstance(target, ast.FunctionDef):
                found.add(_CALLED_OTHERWISE.get(target.name, target.name))
            else:
                waiting += [(there, child) for child in _parts(target)]
    return found - _NO_COLLECTIVE


def _whole_class(by_name: Mapping[str, Module], module: Module, base: ast.expr) -> Iterator[_Place]:
    """Yield the methods of a base class and of its own bases."""
    for there, target in _meant(by_name, module, base, {}):
        if isinstance(target, ast.ClassDef):
            yield from ((there, child) for child in _parts(target))
            for further in target.bases:
                yield from _whole_class(by_name, there, further)


def _parts(node: ast.AST) -> list[ast.AST]:
    """Return what of *node* is carried out: a class's methods and attributes, anything else itself."""
    return list(node.body) if isinstance(node, ast.ClassDef) else [node]


def _used(by_name: Mapping[str, Module], module: Module, part: ast.AST) -> Iterator[_Place]:
    """Yield the functions, methods and assigned values that *part* uses."""
    local = _imports(part)
    called = {id(node.func) for node in ast.walk(part) if isinstance(node, ast.Call)}
    for node in _expressions(part):
        for there, target in _meant(by_name, module, node, local):
            if not isinstance(target, ast.ClassDef):
                yield there, target
            elif id(node) in called or target.name.startswith("_"):
                yield from ((there, part) for part in _made(target))


def _expressions(part: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
    """Yield the names and attributes below *part* that are no annotations."""
    if isinstance(part, (ast.Name, ast.Attribute)):
        yield part
    for field, value in ast.iter_fields(part):
        if field not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _expressions(child)


def _meant(
    by_name: Mapping[str, Module], module: Module, node: ast.expr, local: Mapping[str, tuple[str, str]]
) -> Iterator[_Place]:
    """Yield what *node* stands for in *module*: at most one function, class or assigned value, or methods of a class."""
    if isinstance(node, ast.Name):
        found = _looked_up(by_name, module, node.id, local)
        if found is not None and not isinstance(found[1], ast.Module):
            yield found
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        found = _looked_up(by_name, module, node.value.id, local)
        if found is not None and isinstance(found[1], ast.Module):
            inner = _looked_up(by_name, found[0], node.attr, {})
            if inner is not None and not isinstance(inner[1], ast.Module):
                yield inner
        elif found is not None and isinstance(found[1], ast.ClassDef):
            own = _methods(found[1], node.attr)
            yield from ((found[0], method) for method in own or _methods(found[1], "forward"))


def _made(node: ast.ClassDef) -> list[ast.stmt]:
    """Return what making an object of a class may lead to: all of a private one, as it is made to be used on the spot."""
    if node.name.startswith("_"):
        return list(node.body)
    return [method for name in ("__init__", "__call__", "forward") for method in _methods(node, name)]


def _methods(node: ast.ClassDef, name: str) -> list[ast.FunctionDef]:
    return [child for child in node.body if isinstance(child, ast.FunctionDef) and child.name == name]


def _looked_up(
    by_name: Mapping[str, Module], module: Module, name: str, local: Mapping[str, tuple[str, str]]
) -> _Place | None:
    """Return the function, class, assigned value or module that *name* stands for among the modules *by_name*."""
    source = {**_imports(module.tree), **local}.get(name)
    if source is not None:
        package, thing = source
        inside = by_name.get(f"{package}.{thing}")
        if inside is not None:
            return inside, inside.tree
        there = by_name.get(package)
        return None if there is None or there is module else _looked_up(by_name, there, thing, {})
    for statement in module.tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and statement.name == name:
            return module, statement
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return module, statement.value
    return None


def _imports(tree: ast.AST) -> dict[str, tuple[str, str]]:
    """Return what ``from package import name`` below *tree*, or at the top of a module, makes known."""
    nodes = tree.body if isinstance(tree, ast.Module) else ast.walk(tree)
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
