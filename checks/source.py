"""The project's Python modules as syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef

# Modules that a frontend mirrors, and programs import, though their framework gave them an underscore.
_MIRRORED = frozenset({"_functional_collectives"})


class Module(NamedTuple):
    """One source file. ``path`` is relative to the root of the tree, ``name`` is what one imports."""

    path: Path
    name: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


def modules(root: Path, folder: str) -> Iterator[Module]:
    """Yield the modules below *folder* of the tree at *root*, in the order of their paths."""
    for file in sorted((root / folder).rglob("*.py")):
        path = file.relative_to(root)
        parts = path.with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield Module(path, name, _written_out(root, file))


def _written_out(root: Path, file: Path) -> ast.Module:
    """Return the syntax tree of *file*, with the names in place of ``from M import *``.

    Where ``M`` is ours, ``from M import __all__ as names`` lets ``[*names, "more"]`` be a list of strings like any other, in the same order.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"), filename=str(file.relative_to(root)))
    lists: dict[str, list[str]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom):
            for alias in list(statement.names):
                if alias.name == "*":
                    statement.names = [ast.alias(name) for name in _listed(root, statement.module)]
                elif alias.name == "__all__":
                    lists[alias.asname or alias.name] = _listed(root, statement.module)
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.List):
            items = [each for item in statement.value.elts for each in _items(item, lists)]
            statement.value.elts = items if len(items) == len(statement.value.elts) else sorted(items, key=_place)
    return tree


def _listed(root: Path, module: str | None) -> list[str]:
    """Return what *module*, one of ours, lists in ``__all__``."""
    path = root.joinpath(*(module or "").split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return string_list(_written_out(root, file), "__all__") or []


def _items(item: ast.expr, lists: Mapping[str, list[str]]) -> list[ast.expr]:
    if isinstance(item, ast.Starred) and isinstance(item.value, ast.Name) and item.value.id in lists:
        return [ast.Constant(name) for name in lists[item.value.id]]
    return [item]


def _place(item: ast.expr) -> tuple[int, str]:
    """Return by what ruff's rule RUF022 sorts names: constants, classes, and then all others."""
    name = str(ast.literal_eval(item))
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def is_public(name: str) -> bool:
    """Tell whether every part of a dotted *name* is without a leading underscore, or a framework's own for a module."""
    return not any(part.startswith("_") and part not in _MIRRORED for part in name.split("."))


def string_list(tree: ast.Module, variable: str) -> list[str] | None:
    """Return the list of strings that *variable* is assigned at the top of *tree*, or None where there is none."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == variable for target in statement.targets
        ):
            value = ast.literal_eval(statement.value)
            return [str(item) for item in value]
    return None


def definition(by_name: Mapping[str, Module], module: Module, name: str) -> tuple[Module, Definition] | None:
    """Follow *name* in *module* through the imports among the modules *by_name* to the function or class it stands for.

    None for anything else, and for what comes from elsewhere.
    """
    for statement in module.tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and statement.name == name:
            return module, statement
        if isinstance(statement, ast.ImportFrom) and statement.module != module.name:
            source = by_name.get(statement.module or "")
            for alias in statement.names:
                if source is not None and (alias.asname or alias.name) == name:
                    return definition(by_name, source, alias.name)
    return None
