"""``docs/deviations.md`` is written from the ``Deviates:`` lines of the frontends' docstrings.

``python -m checks.deviations`` writes it; the check compares what stands there with what would be written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from checks.source import Definition, Module, definition, is_public, modules, string_list

PAGE = Path("docs/deviations.md")

_PREAMBLE = """\
# Deviations

This page lists where a frontend deliberately differs from its framework. Any other difference is a bug: please report
it.

`python -m checks.deviations` generates this page from the `Deviates:` lines of the docstrings. Edit them there.
"""
_SECTION = re.compile(r"^(?:Raises|Deviates|See|Returns):")


def check(root: Path) -> list[str]:
    """Find a page that is not what the docstrings say."""
    page = root / PAGE
    written = page.read_text(encoding="utf-8") if page.exists() else ""
    if written == render(root):
        return []
    return [f"{PAGE}:1: is not what the docstrings say: run python -m checks.deviations"]


def render(root: Path) -> str:
    """Return the whole page for the tree at *root*, each deviation once for every frontend that has it."""
    by_name = {module.name: module for module in modules(root, "shim/frontends")}
    text = _PREAMBLE
    told: set[tuple[str, int]] = set()
    for module in by_name.values():
        if not is_public(module.name):
            continue
        rows = []
        for name, node in _offered(by_name, module):
            frontend = ".".join(module.name.split(".")[:3])
            if (frontend, id(node)) not in told:
                rows += [f"| `{deviating}` | {how} |" for deviating, how in deviations_of(node, name)]
            told.add((frontend, id(node)))
        if rows:
            text += "\n".join([f"\n## {module.name}\n", "| name | what differs |", "| --- | --- |", *rows, ""])
    return text


def _offered(by_name: dict[str, Module], module: Module) -> Iterator[tuple[str, Definition | ast.Module]]:
    """Yield the module itself and what it lists in ``__all__``, wherever that is defined."""
    yield module.name.rpartition(".")[2], module.tree
    for name in string_list(module.tree, "__all__") or []:
        found = definition(by_name, module, name)
        if found is not None:
            yield name, found[1]


def deviations_of(node: Definition | ast.Module, name: str) -> Iterator[tuple[str, str]]:
    """Yield what *node*, called *name*, and the methods of a class say of their deviations."""
    deviation = _deviation(ast.get_docstring(node) or "")
    if deviation:
        yield name, deviation
    if isinstance(node, ast.ClassDef):
        for child in node.body:
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from deviations_of(child, f"{name}.{child.name}")


def _deviation(docstring: str) -> str:
    """Return what follows ``Deviates:`` up to the next section, a blank line or the end, in one line."""
    found: list[str] = []
    inside = False
    for line in docstring.splitlines():
        if not line.strip() or _SECTION.match(line):
            inside = line.startswith("Deviates:")
            line = line.removeprefix("Deviates:")
        if inside:
            found.append(line.strip())
    return " ".join(found).replace("|", "\\|").strip()


if __name__ == "__main__":
    _root = Path(__file__).resolve().parent.parent
    (_root / PAGE).parent.mkdir(exist_ok=True)
    (_root / PAGE).write_text(render(_root), encoding="utf-8")
