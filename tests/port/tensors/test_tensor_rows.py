"""Every row of the tables of tensors: the port, with the tensors of the target framework, computes what the original does with its own."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from plain_values import is_same, plain
from tensor_programs import EXPRESSIONS, HEAD

from shim.port import Plan, port_source
from shim.port.apis import APIS
from shim.port.correspondences.members import TENSOR_MEMBERS
from shim.port.correspondences.names import TENSOR_NAMES
from shim.port.correspondences.tensors import FUNCTIONS, METHODS

# Rows whose functions need a device that is not here, or a class, and what torch has under another name: their text is tested in test_statements.py.
BY_TEXT = {"cuda", "sort_values", ".sort_values", "stop_gradient", "torch.autograd.Function", "torch.cuda.synchronize"}
# What is left, and why: torch's expression by the API that it goes to.
WITHOUT = {
    **{(row, "mindspore"): "no-equivalent" for row in ("cpu", "grad", "is_cuda", "is_leaf", "requires_grad")},
    **{(row, "paddle_2"): "no-equivalent" for row in ("is_cuda", "itemsize", "mT")},
    **{("nbytes", target): "no-equivalent" for target in ("paddle_2", "paddle_3")},
    (".new_empty", "paddle_2"): "no-equivalent",
    (".new_zeros", "paddle_2"): "no-equivalent",
    ("pad", "paddle_2"): "pad-order",
    (".new_ones", "paddle_2"): "no-equivalent",
    **{(".narrow", target): "no-equivalent" for target in ("paddle_2", "paddle_3")},
    **{
        (row, "mindspore"): "no-equivalent"
        for row in (*("unique", ".unique", "index_add", ".index_add", "isin", "einsum"),)
    },
}
REMARKS = {
    "device-not-given",
    "numpy-memory",
    "chunk-must-be-even",
    "private-name",
    "shape-may-be-number",
    "contiguous-in-place",
    "cross-entropy",
    "sign-of-nan",
    "random-numbers",
    "dtype-of-integers",
    "order-of-ties",
    "index-dtype",
}
# What MindSpore's kernels for CPUs approximate.
CLOSE = {f"{dot}{name}" for name in ("exp", "tanh", "log_softmax") for dot in ("", ".")}


def test_each_row_has_an_expression() -> None:
    names = {line.split()[0] for line in TENSOR_NAMES.strip().splitlines()}
    assert {*FUNCTIONS, *(f".{row}" for row in METHODS), *TENSOR_MEMBERS, *names} == EXPRESSIONS.keys() | BY_TEXT


TARGETS = ["paddle_2", "paddle_3", "mindspore"]
LINES = [(row, expression) for row, expressions in EXPRESSIONS.items() for expression in expressions]


def program(lines: list[tuple[str, str]]) -> str:
    """A program of torch that computes each of *lines*, on a line of its own."""
    return f"{HEAD}    return [\n" + "".join(f"        {expression},\n" for _, expression in lines) + "    ]\n"


FIRST = HEAD.count("\n") + 2  # the line of the first expression


@pytest.mark.frameworks
@pytest.mark.ranks(1)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", TARGETS)
def test_the_port_computes_the_same(target: str) -> None:
    whole = port_source(program(LINES), Plan("torch", target, scope="files"))
    left = {(LINES[entry.line - FIRST][0], entry.rule) for entry in whole.entries if entry.kind == "left"}
    assert left == {(row, rule) for (row, other), rule in WITHOUT.items() if other == target}
    assert {entry.rule for entry in whole.entries if entry.kind == "changed"} <= REMARKS

    lines = with_equivalent(target)
    text = port_source(program(lines), Plan("torch", target, scope="files")).text
    assert "torch" not in text.replace("frontends.torch", "")
    assert_same(computed(text, target), computed(program(lines), "torch"), lines)


def with_equivalent(target: str) -> list[tuple[str, str]]:
    return [(row, expression) for row, expression in LINES if (row, target) not in WITHOUT]


# Of what a second port may leave lines: what it cannot know of Paddle's pad, forms that it only writes, and what an API has not.
LEFT_FURTHER = {"pad", ".max", ".min", "equal", *(row for row, _ in WITHOUT)}
# Paddle's clone is contiguous, and torch's has the tensor's own strides.
OTHER_STRIDES = "y.contiguous().is_contiguous()"


FURTHER = [
    pytest.param(source, target, marks=() if (source, target) == ("paddle_3", "torch") else pytest.mark.nightly)
    for source in TARGETS
    for target in APIS
    if source != target
]


@pytest.mark.frameworks
@pytest.mark.ranks(1)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("source", "target"), FURTHER)
def test_the_port_of_a_port_computes_the_same(source: str, target: str) -> None:
    lines = with_equivalent(source)
    expected = computed(program(lines), "torch")
    text = port_source(program(lines), Plan("torch", source, scope="files")).text
    ported = port_source(text, Plan(source, target, scope="files"))
    first = text[: text.index("    return [")].count("\n") + 2
    left = {entry.line - first for entry in ported.entries if entry.kind == "left"}
    assert {lines[number][0] for number in left} <= LEFT_FURTHER
    if APIS[source].framework == "paddle":
        left.add([expression for _, expression in lines].index(OTHER_STRIDES))
    kept = [number for number in range(len(lines)) if number not in left]
    shorter = [line for number, line in enumerate(text.splitlines(True)) if number - first + 1 not in left]
    ported = port_source("".join(shorter), Plan(source, target, scope="files"))
    assert_same(
        computed(ported.text, target), [expected[number] for number in kept], [lines[number] for number in kept]
    )


def computed(text: str, api: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(text, f"<{api}>", "exec"), names)
    make = {"torch": "from_numpy", "paddle": "to_tensor", "mindspore": "tensor"}
    framework = importlib.import_module(APIS[api].framework)
    x, y, v, i = (getattr(framework, make[framework.__name__])(each) for each in arrays())
    return plain(names["run"](x, y.T, v, i, 2))


def arrays() -> list[np.ndarray]:
    return [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.arange(6, dtype=np.float32).reshape(2, 3) * 2,
        np.arange(5, dtype=np.float32) + 1,
        np.arange(4, dtype=np.int64),
    ]


def assert_same(found: list[Any], expected: list[Any], lines: list[tuple[str, str]]) -> None:
    assert len(found) == len(expected) == len(lines)
    wrong = [
        (line, one, other)
        for line, one, other in zip(lines, found, expected, strict=True)
        if not is_same(one, other, 1e-4 if line[0] in CLOSE else 2e-6)
    ]
    assert not wrong
