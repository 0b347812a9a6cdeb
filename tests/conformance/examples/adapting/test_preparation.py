"""What an example finds that its document leaves to the reader."""

from __future__ import annotations

import ast

import pytest

from shim.conformance.examples.adapting import begin_of, names_of
from shim.conformance.examples.example import Example
from shim.conformance.examples.reading.reader import examples_in


def example(text: str, framework: str = "torch", function: str = "torch.distributed.all_reduce") -> Example:
    (found,) = examples_in(text, framework, function, "a test")
    return found


def bound_by(code: str) -> set[str]:
    names = {
        alias.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    return names | {
        node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (">>> f(op=ReduceOp.SUM)\n", {"ReduceOp"}),
        (">>> f(op=dist.ReduceOp.SUM)\n", set()),
        (">>> for i in range(num_colls):\n>>>     f(tensors[i])\n", {"num_colls", "tensors"}),
        (">>> tensors = [1]\n>>> f(tensors)\n", set()),
        (">>> all_reduce(1)\n", {"all_reduce"}),
        (">>> from torch.distributed import all_reduce\n>>> dist.all_reduce(1)\n", set()),
    ],
)
def test_names_that_are_used_and_not_bound(text: str, expected: set[str]) -> None:
    assert bound_by(names_of(example(text))) - {"_"} == expected


def test_names_are_left_to_the_reader_by_one_framework_only() -> None:
    assert names_of(example(">>> f(op=ReduceOp.SUM)\n", "paddle", "paddle.distributed.reduce")) == ""


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        (">>> dist.all_reduce(1)\n", True),
        (">>> dist.init_process_group('gloo')\n", False),
        (">>> dist.HashStore()\n", False),
    ],
)
def test_the_world_is_prepared_unless_the_example_does_so(text: str, prepared: bool) -> None:
    assert ("init_process_group" in begin_of(example(text))) is prepared
