"""``docs/deviations.md`` is written from the ``Deviates:`` lines of the frontends' docstrings.

``python -m checks.deviations`` writes it; the check compares what stands there with what would be written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from checks.source import Module, modules

__all__ = ["PAGE", "check", "deviations_in", "render"]

PAGE = Path("docs/deviations.md")

_PREAMBLE = """\
# Deviations

Where a frontend knowingly does something else than the framework it stands for. Everything that is not listed here
and differs is a mistake: please report it.

This page is written from the `Deviates:` lines of the frontends' docstrings by `python -m checks.deviations`;
change it there.
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
    """Return the whole page for the tree at *root*."""
    text = _PREAMBLE
    for module in modules(root, "shim/frontends"):
        rows = [f"| `{name}` | {deviation} |" for name, deviation in deviations_in(module)]
        if rows:
            text += "\n".join([f"\n## {module.name}\n", "| name | what differs |", "| --- | --- |", *rows, ""])
    return text


def deviations_in(module: Module) -> Iterator[tuple[str, str]]:
    """Yield the names in *module* that deviate, each with how, in the order of the source."""
    yield from _of(module.tree, module.name.rpartition(".")[2])


def _of(node: ast.Module | ast.ClassDef | ast.FunctionDef, name: str) -> Iterator[tuple[str, str]]:
    deviation = _deviation(ast.get_docstring(node) or "")
    if deviation:
        yield name, deviation
    for child in node.body:
        if isinstance(child, (ast.ClassDef, ast.FunctionDef)):
            prefix = f"{name}." if isinstance(node, ast.ClassDef) else ""
            yield from _of(child, prefix + child.name)


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
