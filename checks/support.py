"""``docs/support.md`` is written from what the frontends list in ``__all__``, and from what those functions come to call.

``python -m checks.support`` writes it; the check compares what stands there with what would be written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from checks.reach import collectives_of
from checks.source import Module, definition, is_public, modules, string_list
from shim.conformance.signatures.comparison import EXCEPTIONS
from shim.record import recorded_of

PAGE = Path("docs/support.md")

_PREAMBLE = """\
# What each frontend has

This page lists every name of the frameworks' modules, for the recorded versions: the collectives that the function uses,
and how each engine carries them out.

- *own*: the engine has its own implementation.
- *default*: the engine uses the plain implementation over its messages and its agreement.
- *unsupported*: the function raises UnsupportedError, for the reason given.
- A dash: the name communicates nothing, such as queries, classes and constants.

`python -m checks.support` generates this page from the source. Do not edit it.
"""
_ALWAYS = re.compile(r"UnsupportedError, always: (.*?)(?:\n\w+:|\Z)", re.DOTALL)


def check(root: Path) -> list[str]:
    """Find a page that is not what the frontends and the engines have."""
    page = root / PAGE
    written = page.read_text(encoding="utf-8") if page.exists() else ""
    if written == render(root):
        return []
    return [f"{PAGE}:1: is not what the frontends have: run python -m checks.support"]


def render(root: Path) -> str:
    """Return the whole page for the tree at *root*."""
    by_name = {module.name: module for folder in ("shim/frontends", "shim/core") for module in modules(root, folder)}
    engines = dict(_engines(root, by_name))
    text = _PREAMBLE
    for module in by_name.values():
        found = recorded_of(module.name)
        if not is_public(module.name) or found is None:
            continue
        signatures, names = found
        text += f"\n## {module.name}\n\nAs {signatures.framework} {signatures.version} has it.\n\n"
        text += f"| name | collectives | {' | '.join(engines)} |\n| --- | --- |{' --- |' * len(engines)}\n"
        for name in string_list(module.tree, "__all__") or []:
            cells = _cells(by_name, module, name, engines)
            text += f"| `{name}` | {' | '.join(cells)} |\n"
        theirs = signatures.framework + module.name.removeprefix(".".join(module.name.split(".")[:3]))
        for name in sorted(names):
            if f"{theirs}.{name}" in EXCEPTIONS:
                text += (
                    f"| `{name}` | | {' | '.join(['not here: ' + EXCEPTIONS[f'{theirs}.{name}']] * len(engines))} |\n"
                )
    return text


def _engines(root: Path, by_name: Mapping[str, Module]) -> Iterator[tuple[str, set[str]]]:
    """Yield the engines' names, each with the collectives for which it or a class between it and ``Engine`` has methods, or moves the data."""
    classes = _engine_classes(by_name)
    bases = {base for _, node in classes.values() for base in _bases(node)}
    for name, (folder, _) in classes.items():
        if name.endswith("Engine") and name not in bases:  # what others are derived from is no engine by itself
            yield folder, _own_methods(root, classes, name)


def _engine_classes(by_name: Mapping[str, Module]) -> dict[str, tuple[str, ast.ClassDef]]:
    """Return by name the classes of engines, and what these are derived from, with the folder or module of each."""
    return {
        node.name: (module.name.split(".")[3], node)
        for module in by_name.values()
        if module.name.startswith("shim.core.engines.")
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Engine", "Layer")) and node.name != "Engine"
    }


def _own_methods(root: Path, classes: Mapping[str, tuple[str, ast.ClassDef]], name: str) -> set[str]:
    node = classes[name][1] if name in classes else _native_class(root, name)
    own = {method.removeprefix("move_") for method in _methods(node)}
    return own.union(*(_own_methods(root, classes, base) for base in _bases(node)))


def _bases(node: ast.ClassDef) -> list[str]:
    return [base.id for base in node.bases if isinstance(base, ast.Name) and base.id != "Engine"]


def _native_class(root: Path, name: str) -> ast.ClassDef:
    """Return the class *name* of the native module, as its stub has it."""
    stub = ast.parse((root / "shim" / "_native.pyi").read_text(encoding="utf-8"))
    return next(node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == name)


def _methods(node: ast.ClassDef) -> set[str]:
    return {child.name for child in node.body if isinstance(child, ast.FunctionDef)}


def _cells(by_name: Mapping[str, Module], module: Module, name: str, engines: Mapping[str, set[str]]) -> list[str]:
    """Return the cells that follow a name: the collectives, and one for each engine."""
    found = definition(dict(by_name), module, name)
    if found is None:
        return [""] + ["-"] * len(engines)
    unsupported = _ALWAYS.search(ast.get_docstring(found[1]) or "")
    if unsupported is not None:
        reason = " ".join(unsupported[1].split()).rstrip(".").replace("|", "\\|")
        return [""] + [f"unsupported: {reason}"] * len(engines)
    used = sorted(collectives_of(by_name, *found))
    if not used:
        return [""] + ["-"] * len(engines)
    return [", ".join(used), *(_how(used, native) for native in engines.values())]


def _how(used: list[str], native: set[str]) -> str:
    missing = [name for name in used if name not in native]
    return "own" if not missing else f"default: {', '.join(missing)}"


if __name__ == "__main__":
    _root = Path(__file__).resolve().parent.parent
    (_root / PAGE).write_text(render(_root), encoding="utf-8")
