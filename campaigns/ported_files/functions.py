"""Functions of a file, run on ranks before and after its port, on the same numbers."""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from campaigns.ported_files.listed import Use
from shim.launch.pool import RankPool
from shim.port import Plan, port_source
from shim.port.apis import APIS

_INITIALISE = {"torch": "init_process_group", "paddle": "init_parallel_env", "mindspore": "init_process_group"}


@dataclass(frozen=True)
class Outcome:
    """How the port of a *use* to *target* did. ``tensors`` says whose it computed with."""

    use: Use
    target: str
    tensors: str
    differs: str = ""


def run_uses(file: Path, uses: list[Use], source: str, targets: tuple[str, ...], ranks: RankPool) -> list[Outcome]:
    """Run *uses* of functions in *file*, which is written in *source*, before and after the ports to *targets*."""
    text = file.read_text(encoding="utf-8")
    found = []
    for use in uses:
        before = _run(ranks, port_source(text, Plan(source, source)).text, use, source, APIS[source].framework)
        for target in targets:
            framework = APIS[target].framework
            whole = port_source(text, Plan(source, target, scope="files"))
            lines = _lines_of(text, use.name)
            if any(entry.line in lines and entry.kind == "left" for entry in whole.entries):
                framework = APIS[source].framework
                whole = port_source(text, Plan(source, target))
                if any(entry.line in lines and entry.kind == "left" for entry in whole.entries):
                    found.append(Outcome(use, target, "", "left"))
                    continue
            after = _run(ranks, whole.text, use, target, framework)
            found.append(Outcome(use, target, framework, _difference(before, after)))
    return found


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
    with contextlib.suppress(AssertionError, TypeError, ValueError):
        _assert_same(after, before)
        return ""
    return f"{after} and not {before}"


def _assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, (list, dict)):
        assert type(found) is type(expected)
        assert len(found) == len(expected)
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            _assert_same(found[key], expected[key])
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, 2e-6, 2e-6)
    else:
        assert found == expected
        assert not isinstance(found, str)  # an error on both sides is no result


def _lines_of(text: str, name: str) -> set[int]:
    return {line for node in _needed(ast.parse(text), name) for line in range(node.lineno, (node.end_lineno or 0) + 1)}


def _segments(text: str, name: str) -> list[str]:
    """Return the code of *name* and of all that it needs of its module, in the module's order."""
    lines = text.splitlines()
    found = []
    for node in _needed(ast.parse(text), name):
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        found.append("\n".join(lines[first - 1 : node.end_lineno]))
    return found


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
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in statement.names]
    if isinstance(statement, ast.Assign):
        return [node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    return [
        name
        for each in ast.walk(statement)
        if isinstance(each, (ast.Import, ast.ImportFrom))
        for name in _names_bound(each)
    ]
