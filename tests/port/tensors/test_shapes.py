"""Shapes and dtypes in forms that Paddle alone takes: zeros, lists, strings. They are ported, or reported where the source does not show them."""

from __future__ import annotations

import ast

import pytest

from shim.port import Plan, Ported, port_source


def port(line: str, one: str, other: str) -> Ported:
    framework = "paddle" if one.startswith("paddle") else "torch"
    source = f"import {framework}\nimport {framework}.distributed as dist\ndef f(x, p, n: int, dtype='int64'):\n"
    ported = port_source(f"{source}    dist.all_reduce(x)\n    {line}\n", Plan(one, other, scope="statements"))
    ast.parse(ported.text)
    return ported


CHANGED = [
    ("y = x.reshape([0, -1])", "y = x.reshape([x.shape[0], -1])"),
    ("y = paddle.reshape(x, (n, 0, 0))", "y = torch.reshape(x, (n, x.shape[1], x.shape[2]))"),
    ("y = x.reshape([n, -1])", "y = x.reshape([n, -1])"),
    ("s = [n, 2]\n    y = x.reshape(s)", "s = [n, 2]\n    y = x.reshape(s)"),
    ("y = x.reshape(x.shape)", "y = x.reshape(x.shape)"),
    ("y = paddle.zeros([2], dtype=x.dtype)", "y = torch.zeros([2], dtype=x.dtype)"),
    ("y = paddle.zeros([2], dtype=p.dtype)", "y = torch.zeros([2], dtype=p.dtype)"),
    ("y = x.astype('int64')", "y = x.to(torch.int64)"),
    ("y = [n] + x.shape[1:]", "y = [n] + list(x.shape[1:])"),
    ("y = p.shape + [1]", "y = list(p.shape) + [1]"),
    ("y = x.shape + x.shape[:1]", "y = x.shape + x.shape[:1]"),
    ("s = [n]\n    y = s + x.shape", "s = [n]\n    y = s + list(x.shape)"),
    ("y = list(x.shape) + [n]", "y = list(x.shape) + [n]"),
    ("y = x.shape == p.shape", "y = x.shape == p.shape"),
    ("y = x.shape[0] == p", "y = x.shape[0] == p"),
    ("s = list(x.shape)\n    s[0] = n", "s = list(x.shape)\n    s[0] = n"),
]


@pytest.mark.parametrize(("line", "expected"), CHANGED)
def test_what_the_source_shows(line: str, expected: str) -> None:
    ported = port(line, "paddle_2", "torch")
    assert f"    {expected}\n" in ported.text
    assert not ported.entries


REPORTED = [
    ("paddle_3", "torch", "y = (x + 1).reshape([0, -1])", "left", "zero-in-shape"),
    ("paddle_3", "torch", "s = [0, -1]\n    y = x.reshape(s)", "left", "zero-in-shape"),
    ("paddle_3", "mindspore", "y = x.reshape(p)", "changed", "zero-in-shape"),
    ("paddle_3", "torch", "y = paddle.reshape(x, p.sizes)", "changed", "zero-in-shape"),
    ("torch", "paddle_3", "y = x.reshape(0, 3)", "left", "zero-in-shape"),
    ("torch", "paddle_2", "y = x.view((3, 0))", "left", "zero-in-shape"),
    ("paddle_3", "torch", "d = 'int64'\n    y = paddle.zeros([2], dtype=d)", "left", "dtype-as-string"),
    ("paddle_3", "torch", "y = paddle.zeros([2], f'{p}{n}')", "left", "dtype-as-string"),
    ("paddle_3", "torch", "y = paddle.zeros([2], 'pair')", "left", "dtype-as-string"),
    ("paddle_3", "mindspore", "y = paddle.full([2], 1, dtype=dtype)", "changed", "dtype-as-string"),
    ("paddle_2", "torch", "y = x.shape + p", "changed", "shape-type"),
    ("paddle_2", "torch", "y = p == x.shape", "changed", "shape-type"),
    ("paddle_3", "mindspore", "y = x.shape[1:] + p.sizes", "changed", "shape-type"),
    ("torch", "paddle_2", "y = x.shape + p", "changed", "shape-type"),
    ("paddle_2", "torch", "s = x.shape\n    s[0] = n", "left", "shape-type"),
    ("paddle_2", "torch", "s = x.shape\n    s[0] *= n", "left", "shape-type"),
    ("paddle_2", "torch", "s = x.shape\n    s += [n]", "left", "shape-type"),
]


@pytest.mark.parametrize(("one", "other", "line", "kind", "rule"), REPORTED, ids=[each[2] for each in REPORTED])
def test_what_is_not_certain(one: str, other: str, line: str, kind: str, rule: str) -> None:
    ported = port(line, one, other)
    assert [(entry.kind, entry.rule) for entry in ported.entries] == [(kind, rule)]
    assert ported.entries[0].line == 5 + line.count("\n")
