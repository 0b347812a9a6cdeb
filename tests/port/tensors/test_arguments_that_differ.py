"""Calls whose arguments mean something else, or nothing, elsewhere: each is left, or reported, on its line."""

from __future__ import annotations

import pytest

from shim.port import Plan, Ported, port_source

HEADS = {
    "torch": "import torch\nimport torch.distributed as dist\nTensor = torch.Tensor\n",
    "paddle_3": "import paddle\nimport paddle.distributed as dist\nTensor = paddle.Tensor\n",
    "mindspore": "import mindspore\nimport mindspore.mint.distributed as dist\nTensor = mindspore.Tensor\n",
}


def port(line: str, one: str, other: str) -> Ported:
    framework = one.partition("_")[0]
    head = f"{HEADS[one]}def f(x: {framework}.Tensor, y: {framework}.Tensor):\n    dist.all_reduce(x)\n"
    return port_source(f"{head}    {line}\n", Plan(one, other, scope="files"))


LEFT = [
    ("torch", "mindspore", "x[-1].add_(5)", "views-as-outputs"),
    ("torch", "mindspore", "x.T[0].zero_()", "views-as-outputs"),
    ("torch", "mindspore", "x[0].scatter_(0, y, x)", "views-as-outputs"),
    ("torch", "mindspore", "z = torch.nn.functional.normalize(x, 1)", "tensor-function"),
    ("torch", "mindspore", "z = torch.argmax(x, keepdim=True)", "no-equivalent-argument"),
    ("torch", "mindspore", "z = x.scatter(0, y, 1.0)", "no-equivalent-argument"),
    ("torch", "mindspore", "z = x.max(y)", "no-equivalent-argument"),
    ("torch", "mindspore", "z = torch.nn.functional.softmax(x)", "no-equivalent-argument"),
    ("torch", "mindspore", "z = torch.norm(x, 2)", "no-equivalent-argument"),
    ("torch", "paddle_3", "z = torch.norm(x, 1, (0, 1))", "no-equivalent-argument"),
    ("torch", "paddle_3", "z = torch.max(x, n)", "axis-or-tensor"),
    ("torch", "paddle_3", "z = torch.sort(x + 1)", "computed-twice"),
    ("torch", "paddle_3", "torch.max(x, dim=0)[0].mul_(2)", "computed-twice"),
    ("paddle_3", "torch", "z = paddle.put_along_axis(x, y, x, 0, 'add', False)", "no-equivalent-argument"),
    ("paddle_3", "torch", "z = paddle.put_along_axis(x, y, 5.0, 1)", "no-equivalent-argument"),
    ("mindspore", "torch", "z = x.std()", "no-equivalent-argument"),
]


@pytest.mark.parametrize(("one", "other", "line", "rule"), LEFT)
def test_left(one: str, other: str, line: str, rule: str) -> None:
    found = port(line, one, other)
    assert [entry.rule for entry in found.entries if entry.kind == "left"] == [rule]
    assert f"    {line}\n" in found.text


WRITTEN = [
    (
        "torch",
        "paddle_3",
        "z = (x.to(torch.uint8) * 2).sum()",
        "z = (x.astype(paddle.uint8) * 2).sum(dtype=paddle.int64)",
    ),
    ("torch", "paddle_3", "z = torch.nn.functional.softmax(x, dim=-1)", "z = paddle.nn.functional.softmax(x, axis=-1)"),
    ("paddle_3", "torch", "z = paddle.nn.functional.softmax(x, axis=-1)", "z = torch.softmax(x, dim=-1)"),
    ("torch", "paddle_3", 'z = ("loss %s" % x).split(",")', 'z = ("loss %s" % x).split(",")'),
    ("torch", "paddle_3", "z = (x == y).to(torch.int64)", "z = (x == y).astype(paddle.int64)"),
    ("mindspore", "torch", "z = x.std(ddof=1)", "z = x.std()"),
    ("paddle_3", "torch", "z = paddle.sort(x)", "z = torch.sort(x)[0]"),
]


@pytest.mark.parametrize(("one", "other", "line", "expected"), WRITTEN)
def test_written(one: str, other: str, line: str, expected: str) -> None:
    found = port(line, one, other)
    assert f"    {expected}\n" in found.text
    assert not found.entries


def test_a_list_is_filled_with_tensors_of_the_target() -> None:
    text = port("parts = []\n    dist.all_gather(parts, x)", "paddle_3", "torch").text
    assert "parts.extend(x.clone() for _ in range(dist.get_world_size()))" in text


def test_or_in_place_stays() -> None:
    assert "y |= x" in port("y |= x", "paddle_3", "mindspore").text
    assert "y.copy_(y | x)" in port("y |= x", "torch", "mindspore").text
