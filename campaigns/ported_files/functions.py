"""Functions of a file, run on ranks before and after its port, on the same numbers."""

from __future__ import annotations

import ast
import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from campaigns.ported_files.listed import Use
from shim.launch.pool import RankPool
from shim.port import Plan, Ported, port_source
from shim.port.apis import APIS

PACONVERT = "PaConvert"
_INITIALISE = {"torch": "init_process_group", "paddle": "init_parallel_env", "mindspore": "init_process_group"}


@dataclass(frozen=True)
class Outcome:
    """What became of *use* on the way to *target*: with whose ``tensors`` it was run, none where the port leaves it; what ``differs``; and the
    rules of the report's entries on its lines.
    """

    use: Use
    target: str
    tensors: str
    differs: str = ""
    told: tuple[str, ...] = ()


def run_uses(
    file: Path, uses: list[Use], source: str, targets: tuple[str, ...], ranks: RankPool, converted: str | None
) -> list[Outcome]:
    """Run *uses* of functions in *file*, which is written in *source*, before and after the ports to *targets*.

    *converted* is what PaConvert has made of the file; it runs on shim's frontend of Paddle, too.
    """
    text = file.read_text(encoding="utf-8")
    found = []
    for use in uses:
        before = _run(ranks, port_source(text, Plan(source, source)).text, use, source, APIS[source].framework)
        for target in targets:
            ported, framework = port_source(text, Plan(source, target, scope="files")), APIS[target].framework
            if _is_left(text, ported, use) or _names(ported.text, use, APIS[source].framework):
                ported, framework = port_source(text, Plan(source, target)), APIS[source].framework
            if _is_left(text, ported, use):
                found.append(Outcome(use, target, ""))
                continue
            lines = _lines_of(text, use.name)
            told = tuple(sorted({entry.rule for entry in ported.entries if entry.line in lines}))
            after = _run(ranks, ported.text, use, target, framework)
            found.append(Outcome(use, target, framework, _difference(before, after), told))
        if converted is not None:
            found.append(Outcome(use, PACONVERT, "paddle", _of_converted(ranks, converted, use, before)))
    return found


def _is_left(before: str, ported: Ported, use: Use) -> bool:
    lines = _lines_of(before, use.name)
    return any(entry.line in lines and entry.kind == "left" for entry in ported.entries)


def _names(text: str, use: Use, framework: str) -> bool:
    """Tell whether the code of *use* names the *framework* itself."""
    nodes = (node for statement in _needed(ast.parse(text), use.name) for node in ast.walk(statement))
    return any(isinstance(node, ast.Name) and node.id == framework for node in nodes)


def _of_converted(ranks: RankPool, text: str, use: Use, before: list[Any]) -> str:
    text = text.replace("paddle.distributed", "shim.frontends.paddle_3.distributed")
    try:
        after = _run(ranks, f"import shim.frontends.paddle_3.distributed\n{text}", use, "paddle_3", "paddle")
    except SyntaxError:
        return "the file is no Python"
    return _difference(before, after)


def _run(ranks: RankPool, text: str, use: Use, api: str, tensors: str) -> list[Any]:
    part = "\n\n".join(_segments(text, use.name))
    outcomes = ranks.run(_on_rank, part, use.code, api, tensors, deadline=120)
    return [outcome.value if outcome.error is None else outcome.error.splitlines()[-1] for outcome in outcomes]


def _on_rank(text: str, code: str, api: str, framework: str) -> Any:
    importlib.import_module("mindspore")  # before paddle
    rank, size = (int(os.environ[name]) for name in ("SHIM_RANK", "SHIM_WORLD_SIZE"))
    dist = importlib.import_module(APIS[api].written(APIS[api].main, native=False))
    tensors = importlib.import_module(framework)
    make = getattr(tensors, {"torch": "from_numpy", "paddle": "to_tensor", "mindspore": "tensor"}[framework])
    getattr(dist, _INITIALISE[APIS[api].framework])()
    try:
        names = {
            "x": make(np.arange(6, dtype=np.float32).reshape(2, 3) + 10 * rank),
            "i": make(np.arange(4, dtype=np.int64) + rank),
            "group": dist.new_group(list(range(size))),
            "rank": rank,
            "size": size,
        }
        exec(compile(text, "<functions>", "exec"), names)
        exec(compile(code, "<use>", "exec"), names)
        return _plain(names["seen"])
    finally:
        dist.destroy_process_group()


def _plain(value: Any) -> Any:
    """Return *value* with arrays in place of tensors."""
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if hasattr(value, "asnumpy"):
        return np.array(value.asnumpy())
    return np.array(value.detach().numpy()) if hasattr(value, "numpy") else value


def _difference(before: Any, after: Any) -> str:
    """Return what is not the same; empty where all is, and nothing has raised an error."""
    error = next((each for each in (*after, *before) if isinstance(each, str)), "")
    return error or ("" if is_same(after, before) else f"{after} and not {before}")


def is_same(found: Any, expected: Any) -> bool:
    """Tell whether both have the same structure, and arrays of the same shape and dtype with the same numbers to within 2e-6."""
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(is_same, found, expected))
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and found.keys() == expected.keys()
            and all(is_same(found[key], expected[key]) for key in expected)
        )
    if isinstance(expected, np.ndarray):
        are_alike = isinstance(found, np.ndarray) and (found.shape, found.dtype) == (expected.shape, expected.dtype)
        return are_alike and np.allclose(found, expected, 2e-6, 2e-6, equal_nan=True)
    return bool(found == expected)


def _lines_of(text: str, name: str) -> set[int]:
    return {line for node in _needed(ast.parse(text), name) for line in _span(node)}


def _segments(text: str, name: str) -> list[str]:
    """Return the code of *name* and of all that it needs of its module, in the module's order."""
    lines = text.splitlines()
    return ["\n".join(lines[number - 1] for number in _span(node)) for node in _needed(ast.parse(text), name)]


def _span(node: ast.stmt) -> range:
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    return range(first, (node.end_lineno or node.lineno) + 1)


def _needed(tree: ast.Module, name: str) -> list[ast.stmt]:
    bound: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for each in _names_bound(statement):
            bound.setdefault(each, []).append(statement)
    needed, asked = set[ast.stmt](), [name]
    while asked:
        for statement in bound.get(asked.pop(), ()):
            if statement not in needed:
                needed.add(statement)
                asked += [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return [statement for statement in tree.body if statement in needed]


def _names_bound(statement: ast.stmt) -> list[str]:
    """Return the names that *statement* binds in its module, also within an ``if`` or a ``try``."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in statement.names]
    if isinstance(statement, (ast.If, ast.Try)):
        return [
            name
            for each in ast.iter_child_nodes(statement)
            if isinstance(each, ast.stmt)
            for name in _names_bound(each)
        ]
    stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return [node.id for node in stored]
