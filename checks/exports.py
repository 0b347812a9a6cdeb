"""Every module of ``shim/`` says in ``__all__`` what it offers: all of it, and nothing that it does not have.

That the names are in order is ruff's rule RUF022.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from checks.source import Module, is_public, modules, string_list

__all__ = ["check", "names_in"]


def check(root: Path) -> list[str]:
    """Find public names missing from ``__all__``, and names in ``__all__`` that the module does not have."""
    findings = []
    for module in modules(root, "shim"):
        if module.path.name == "__main__.py":
            continue
        defined = set(_defined(module.tree))
        public = {name for name in defined if is_public(name)}
        listed = string_list(module.tree, "__all__")
        if listed is None:
            if public:
                findings.append(f"{module.path}:1: has no __all__, and defines {', '.join(sorted(public))}")
            continue
        available = names_in(module.tree) | _submodules(root, module)
        findings += [
            f"{module.path}:1: {name} is public and not in __all__: list it, or give it a leading underscore"
            for name in sorted(public.difference(listed))
        ]
        findings += [
            f"{module.path}:1: __all__ lists {name}, which is not there"
            for name in listed
            if name not in available and name != "__version__"
        ]
        findings += [f"{module.path}:1: __all__ lists {name} twice" for name in set(listed) if listed.count(name) > 1]
    return findings


def names_in(tree: ast.Module) -> set[str]:
    """Return what one can import from the module that *tree* is, submodules aside."""
    return {*_defined(tree), *_imported(tree)}


def _defined(tree: ast.Module) -> Iterator[str]:
    """Yield the functions, classes and variables that *tree* makes at its top."""
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield statement.name
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id


def _imported(tree: ast.Module) -> Iterator[str]:
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name for alias in statement.names)


def _submodules(root: Path, module: Module) -> set[str]:
    if not module.is_package:
        return set()
    return {file.stem for file in (root / module.path).parent.iterdir() if not file.name.startswith("_")}
