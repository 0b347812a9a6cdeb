"""Names of an API that a file has by way of another file of the project: ``from .common import dist``, where common.py imports it.

A pattern finds the imports of all files. Only files that others import, and that have to do with the API, are parsed.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from shim.port.files.text import parse

_FROM = re.compile(rb"^[ \t]*from[ \t]+(\.*[ \t]*[\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n;#]*)", re.MULTILINE)
_IMPORT = re.compile(rb"^[ \t]*import[ \t]+([^\n;#]+)", re.MULTILINE)
_ROUNDS = 5  # files by way of which a name may come
_ALL = "*"


class _Import(NamedTuple):
    """``from module import name as local``; ``import module as local`` has no name. ``module`` is as it is written, with its dots."""

    module: str
    name: str
    local: str = ""


@dataclass
class _File:
    path: Path
    imports: list[_Import]
    mentions_api: bool
    content: bytes = b""
    at_top: list[_Import] | None = None  # what the module itself imports, and binds in no other way, once it is parsed
    names: dict[str, str] = field(default_factory=dict)  # what it has of the API

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of its path, as an import of it ends in."""
        return (self.path.parent if self.path.name == "__init__.py" else self.path.with_suffix("")).parts


class Reexports:
    """Collects the Python files of a project. *is_of_api* tells whether a dotted name is one of the API."""

    def __init__(self, is_of_api: Callable[[str], bool]) -> None:
        self._is_of_api = is_of_api
        self._files: dict[Path, _File] = {}
        self._by_last: dict[str, list[_File]] = defaultdict(list)

    def add(self, path: Path, content: bytes, mentions_api: bool) -> None:
        """Add the file *path*, which is absolute."""
        file = self._files[path] = _File(path, list(_imports(content)), mentions_api, content)
        self._by_last[file.parts[-1]].append(file)

    def find(self) -> None:
        """Find which names of the API each file has, once all files are added."""
        imported = {
            part for file in self._files.values() for each in file.imports for part in (_last(each.module), each.name)
        }
        wanted = [
            file for file in self._files.values() if file.parts[-1] in imported or file.path.name == "__init__.py"
        ]
        for _ in range(_ROUNDS):
            before = sum(len(file.names) for file in wanted)
            for file in wanted:
                if file.at_top is None and (file.mentions_api or self.of(file.path)):
                    file.at_top = _imported_at_top(file.content)
                for each in file.at_top or ():
                    file.names.update(self._bound_by(file, each))
            if sum(len(file.names) for file in wanted) == before:
                break
        for file in self._files.values():
            file.content = b""

    def of(self, path: Path) -> Sequence[tuple[str, str]]:
        """Return what the file *path* imports of the API by way of other files: each dotted name as its import has it, with the API's name."""
        file = self._files.get(path)
        found: dict[str, str] = {}
        for each in file.imports if file is not None else ():
            for written, name in ((each.module, each.name), (_joined(each.module, each.name), _ALL)):
                names = self._names_of(path, written)
                found.update((_joined(written, own), means) for own, means in names.items() if name in (own, _ALL, ""))
        return sorted(found.items())

    def _bound_by(self, file: _File, each: _Import) -> Iterator[tuple[str, str]]:
        """Give the names of the API that the import *each*, at the top of *file*, binds there, with what they mean."""
        full = _joined(each.module, each.name)
        if self._is_of_api(full):
            yield each.local, full
            return
        for own, means in self._names_of(file.path, each.module).items():
            if each.name == own:
                yield each.local, means
            elif each.name == _ALL and not own.startswith("_"):
                yield own, means

    def _names_of(self, path: Path, module: str) -> dict[str, str]:
        """Return what *module*, as the file *path* writes it, has of the API."""
        bare = module.lstrip(".")
        parts = tuple(bare.split(".")) if bare else ()
        level = len(module) - len(bare)
        if level:
            folder = path.parents[level - 1].parts if level <= len(path.parents) else ()
            parts = (*folder, *parts)
        return {
            name: means
            for file in self._by_last.get(parts[-1], ()) if parts
            if file.names and file.path != path and (file.parts == parts if level else file.parts[-len(parts) :] == parts)
            for name, means in file.names.items()
        }  # fmt: skip


def _imports(content: bytes) -> Iterator[_Import]:
    """Find the imports in *content*, wherever they stand."""
    for found in _FROM.finditer(content):
        module = found[1].decode("utf-8", "replace").replace(" ", "").replace("\t", "")
        for name in re.findall(rb"(?:^|[,(])\s*(\*|\w+)", re.sub(rb"#[^\n]*|\\\n", b"", found[2])):
            yield _Import(module, name.decode("utf-8", "replace"))
    for found in _IMPORT.finditer(content):
        for module in re.findall(rb"(?:^|,)\s*([\w.]+)", found[1]):
            yield _Import(module.decode("utf-8", "replace"), "")


def _imported_at_top(content: bytes) -> list[_Import]:
    """Return what the module with *content* imports outside of functions and classes, by names that it binds in no other way."""
    try:
        tree = parse(content)
    except (SyntaxError, RecursionError, MemoryError):
        return []
    found: list[_Import] = []
    others: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found += [_Import(one.name, "", one.asname) for one in node.names if one.asname]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found += [_Import(module, one.name, one.asname or one.name) for one in node.names]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            others.add(node.name)
        elif not _assigns_none(node):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                others.add(node.id)
            waiting += ast.iter_child_nodes(node)
    return [each for each in found if each.local not in others]


def _assigns_none(node: ast.AST) -> bool:
    """Tell whether *node* is ``name = None``, as where an import has failed."""
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None


def _joined(module: str, name: str) -> str:
    """Return the dotted name of *name* in *module*, which may be dots alone."""
    if not name or not module:
        return module or name
    return f"{module}{name}" if module.endswith(".") else f"{module}.{name}"


def _last(module: str) -> str:
    return module.rpartition(".")[2]
