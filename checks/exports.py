"""``__all__`` of the modules that programs import lists all that they offer, and nothing that they do not have.

The project's own modules have none, unless another one imports ``*`` from them or they pass on what they import. That the names are in
order is ruff's rule RUF022.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from checks.source import Module, is_public, modules, string_list

_OFFERED = ("shim", "shim.errors", "shim.substitution", "shim.testing", "shim.torch_backend", "shim.types")


def check(root: Path) -> list[str]:
    """Find public names missing from ``__all__``, names in it that the module does not have, and lists that nobody reads."""
    findings = []
    starred, stand_ins = _star_imported(root), _stand_ins(root)
    for module in modules(root, "shim"):
        if module.path.name == "__main__.py":
            continue
        defined = set(_defined(module.tree))
        public = {name for name in defined if is_public(name)}
        listed = string_list(module.tree, "__all__")
        is_mirror = module.name.startswith("shim.frontends") and is_public(module.name)
        is_offered = module.name in _OFFERED or is_mirror or f'"{module.name}"' in stand_ins
        if listed is None:
            if public and is_offered:
                findings.append(f"{module.path}:1: has no __all__, and defines {', '.join(sorted(public))}")
            continue
        if not (is_offered or module.name in starred or set(listed) - defined or _reads(module.tree, "__all__")):
            findings.append(f"{module.path}:1: nobody reads its __all__: programs do not import it")
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


def _star_imported(root: Path) -> set[str]:
    """Return the modules whose names another one takes up with ``import *``."""
    return {
        line.split()[1]
        for file in (root / "shim").rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("from ") and " import *" in line
    }


def _stand_ins(root: Path) -> str:
    """Return the code in which a string names each module of ours that views show programs in place of one that no frontend has."""
    return "".join(file.read_text(encoding="utf-8") for file in (root / "shim/substitution").glob("*.py"))


def _reads(tree: ast.Module, variable: str) -> bool:
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return any(name.id == variable and isinstance(name.ctx, ast.Load) for name in names)


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
