"""``docs/support.json`` and ``docs/support.md`` are written from what the frontends list in ``__all__``, and from what those come to call.

``python -m checks.support`` writes both; the check compares what stands there with what would be written. The data has a row for each name:

- ``state``: ``communicates``, ``there`` (which uses no collective), ``refused`` (UnsupportedError, always) or ``absent``; the name ``*`` stands for
  every name of the module that has no row;
- ``collectives``: those that it uses; ``engines`` has for each engine the collectives for which it has an implementation of its own;
- ``differs``: where it deliberately differs; ``why`` and ``instead``: of what is refused or absent.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from checks import support_page
from checks.deviations import deviations_of
from checks.reach import collectives_of
from checks.source import Module, definition, is_public, modules, string_list
from checks.support_page import Row, Support
from shim.conformance.signatures.comparison import EXCEPTIONS
from shim.frontends._absent import ANY
from shim.record import recorded_of

DATA = Path("docs/support.json")
PAGE = Path("docs/support.md")

_ALWAYS = re.compile(r"UnsupportedError, always: (.*?)(?:\n\w+:|\Z)", re.DOTALL)


def check(root: Path) -> list[str]:
    """Find a file that is not what the frontends and the engines have."""
    findings = []
    for file, text in render(root).items():
        written = (root / file).read_text(encoding="utf-8") if (root / file).exists() else ""
        if written != text:
            findings.append(f"{file}:1: is not what the frontends have: run python -m checks.support")
    return findings


def render(root: Path) -> dict[Path, str]:
    """Return the data and the page for the tree at *root*."""
    data = collect(root)
    return {DATA: _lines(data), PAGE: support_page.render(data)}


def collect(root: Path) -> Support:
    """Return what the frontends in the tree at *root* have."""
    by_name = {module.name: module for folder in ("shim/frontends", "shim/core") for module in modules(root, folder)}
    names: list[Row] = []
    versions: dict[str, str] = {}
    for module in by_name.values():
        found = recorded_of(module.name) if is_public(module.name) else None
        if found is None:
            continue
        signatures, recorded = found
        frontend = _frontend(module.name)
        versions[frontend] = f"{signatures.framework} {signatures.version}"
        names += [_row(by_name, module, name) for name in string_list(module.tree, "__all__") or []]
        theirs = signatures.framework + module.name.removeprefix(frontend)
        names += [
            {"module": module.name, "name": name, "state": "absent", "why": EXCEPTIONS[f"{theirs}.{name}"]}
            for name in sorted(recorded)
            if f"{theirs}.{name}" in EXCEPTIONS
        ]
    offered = {(row["module"], row["name"]) for row in names}
    for frontend in versions:  # a module that has the name of a function is not asked for by that name
        names += [row for row in _absent(frontend) if (row["module"], row["name"]) not in offered]
    used = {collective for row in names for collective in row.get("collectives", [])}
    engines = {name: sorted(own & used) for name, own in _engines(root, by_name)}
    return {"frontends": versions, "engines": engines, "names": sorted(names, key=lambda row: row["module"])}


def _lines(data: Support) -> str:
    """Return the *data* as JSON with a line for each name."""
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in data["names"])
    frontends, engines = json.dumps(data["frontends"]), json.dumps(data["engines"])
    return f'{{\n"frontends": {frontends},\n"engines": {engines},\n"names": [\n{rows}\n]\n}}\n'


def _frontend(module: str) -> str:
    return ".".join(module.split(".")[:3])


def _row(by_name: Mapping[str, Module], module: Module, name: str) -> Row:
    row: Row = {"module": module.name, "name": name, "state": "there"}
    found = definition(by_name, module, name)
    if found is None:
        return row
    unsupported = _ALWAYS.search(ast.get_docstring(found[1]) or "")
    if unsupported is not None:
        return {**row, "state": "refused", "why": " ".join(unsupported[1].split()).rstrip(".")}
    used = sorted(collectives_of(by_name, *found))
    if used:
        row = {**row, "state": "communicates", "collectives": used}
    differs = [text if of == name else f"{of}: {text}" for of, text in deviations_of(found[1], name)]
    return {**row, "differs": " ".join(differs).replace("\\|", "|")} if differs else row


def _absent(frontend: str) -> Iterator[Row]:
    """Yield the names that the frontend explains the absence of."""
    for path, names in importlib.import_module(frontend).ABSENT.items():
        module = f"{frontend}.{path}".rstrip(".")
        for name, absent in sorted(names.items(), key=lambda item: (item[0] == ANY, item[0])):
            places = {"module": module, "frontend": frontend}
            yield {
                "module": module,
                "name": name,
                "state": "absent",
                "why": absent.what.format(**places),
                "instead": absent.instead.format(**places),
            }


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


if __name__ == "__main__":
    _root = Path(__file__).resolve().parent.parent
    for _file, _text in render(_root).items():
        (_root / _file).write_text(_text, encoding="utf-8")
