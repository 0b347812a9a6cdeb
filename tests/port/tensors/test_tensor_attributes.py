"""Attributes of tensors: what the table lacks, or the target's tensors, is reported, also where the code assigns it."""

from __future__ import annotations

import ast

import pytest

from shim.port import Plan, Ported, port_source


def port(line: str, one: str, other: str) -> Ported:
    framework = "paddle" if one.startswith("paddle") else one
    source = f"import {framework}\nimport {framework}.distributed as dist\ndef f(x, p, n):\n    dist.all_reduce(x)\n    {line}\n"
    ported = port_source(source.replace("mindspore.dist", "mindspore.mint.dist"), Plan(one, other, scope="statements"))
    ast.parse(ported.text)
    return ported


SAME = [
    ("torch", "paddle_3", "y = x.requires_grad, x.is_leaf, x.T, x.grad, x.is_cuda, x.itemsize"),
    ("torch", "paddle_2", "y = x.is_leaf, x.T, x.grad"),
    ("torch", "mindspore", "y = x.T, x.mT, x.nbytes, x.shape"),
    ("paddle_3", "torch", "y = x.data, x.grad"),
    ("torch", "paddle_3", "x.requires_grad = True"),
    ("torch", "paddle_3", "x.grad = None"),
    ("torch", "paddle_3", "x.data = n"),
    ("torch", "mindspore", "x.data = n"),
    ("torch", "mindspore", "y = p.sharding"),
    ("torch", "mindspore", "p.sharding = n"),
]


@pytest.mark.parametrize(("one", "other", "line"), SAME, ids=[f"{each[2]} to {each[1]}" for each in SAME])
def test_what_all_have(one: str, other: str, line: str) -> None:
    ported = port(line, one, other)
    assert f"    {line}\n" in ported.text
    assert not ported.entries


CHANGED = [
    ("torch", "paddle_2", "y = x.requires_grad", "y = (not x.stop_gradient)"),
    ("paddle_2", "torch", "y = x.stop_gradient", "y = (not x.requires_grad)"),
    ("torch", "paddle_2", "x.requires_grad = False", "x.stop_gradient = True"),
    ("paddle_3", "torch", "x.stop_gradient = True", "x.requires_grad = False"),
    ("paddle_3", "torch", "x.stop_gradient = n or p", "x.requires_grad = not (n or p)"),
    ("paddle_3", "torch", "y = paddle.ones([2])\n    y.stop_gradient = n", "y.requires_grad = not n"),
]


@pytest.mark.parametrize(("one", "other", "line", "expected"), CHANGED, ids=[each[2] for each in CHANGED])
def test_gradients_that_are_wanted_or_stopped(one: str, other: str, line: str, expected: str) -> None:
    ported = port(line, one, other)
    assert f"    {expected}\n" in ported.text
    assert not ported.entries


LEFT = [
    ("torch", "paddle_3", "y = x.tensor_model_parallel", "tensor-function"),
    ("torch", "paddle_3", "y = x.grad_fn", "tensor-function"),
    ("torch", "paddle_3", "y = x.view", "tensor-function"),
    ("torch", "mindspore", "y = x.requires_grad", "no-equivalent"),
    ("torch", "mindspore", "y = x.is_cuda", "no-equivalent"),
    ("paddle_3", "mindspore", "y = x.place", "no-equivalent"),
    ("paddle_3", "torch", "y = x.persistable", "tensor-function"),
    ("paddle_3", "torch", "y = x.name", "tensor-function"),
    ("paddle_2", "mindspore", "y = x.stop_gradient", "no-equivalent"),
    ("torch", "mindspore", "x.requires_grad = True", "no-equivalent"),
    ("torch", "mindspore", "x.grad = None", "no-equivalent"),
    ("torch", "paddle_3", "x.is_distributed = True", "tensor-function"),
    ("paddle_3", "torch", "x.persistable = True", "tensor-function"),
    ("paddle_3", "torch", "x.stop_gradient = y = n", "no-equivalent"),
    ("torch", "mindspore", "dist.all_reduce(p.grad)", "no-equivalent"),
    ("torch", "mindspore", "y = p.requires_grad", "may-be-tensor"),
    ("paddle_3", "torch", "p.stop_gradient = n", "may-be-tensor"),
    ("torch", "mindspore", "p.grad = None", "may-be-tensor"),
]


@pytest.mark.parametrize(("one", "other", "line", "rule"), LEFT, ids=[f"{each[2]} to {each[1]}" for each in LEFT])
def test_what_the_target_lacks(one: str, other: str, line: str, rule: str) -> None:
    ported = port(line, one, other)
    assert f"    {line}\n" in ported.text
    assert [(entry.kind, entry.rule, entry.line) for entry in ported.entries] == [("left", rule, 5)]


def test_gradients_of_parameters_that_mindspore_returns() -> None:
    ported = port("dist.all_reduce(p.grad)\n    p.grad /= n", "torch", "mindspore")
    assert "    p.grad /= n\n" in ported.text
    assert [(entry.rule, entry.line) for entry in ported.entries] == [("no-equivalent", 5), ("no-equivalent", 6)]
    assert "value_and_grad" in ported.entries[0].advice
