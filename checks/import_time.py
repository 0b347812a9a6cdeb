"""Importing any module of ours imports no framework and no other engine's library, but for the backend of torch's, which is nothing without torch.

import-linter cannot tell an import that runs at once from one inside a function, so this reads the syntax trees.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from checks.source import modules

FOREIGN = frozenset({"mindspore", "mpi4py", "paddle", "torch"})
OF_TORCH = (
    "shim.frontends.torch._backend",
    "shim.rehearsal.without_memory",
    "shim.torch_backend",
)  # which only those may import that have torch


def check(root: Path) -> list[str]:
    """Find the imports of frameworks that run when a module under ``shim/`` is imported."""
    return [
        f"{module.path}:{statement.lineno}: imports {name} when it is imported: look in sys.modules, or import it inside"
        " the function that was asked for it"
        for module in modules(root, "shim")
        for statement in _run_at_import(module.tree)
        for name in _imported(statement)
        if not module.name.startswith(OF_TORCH)
        if name.partition(".")[0] in FOREIGN or name.startswith(OF_TORCH)
    ]


def _run_at_import(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is imported, leaving out functions and what only type checkers see."""
    seen = node.orelse if isinstance(node, ast.If) and _is_for_type_checkers(node) else ast.iter_child_nodes(node)
    for child in seen:
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(child, ast.stmt):
            yield child
        yield from _run_at_import(child)


def _is_for_type_checkers(node: ast.If) -> bool:
    return ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _imported(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    if isinstance(statement, ast.ImportFrom) and statement.level == 0:
        return [statement.module or ""]
    return []
