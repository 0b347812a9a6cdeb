"""Parts of a tensor that the code writes into: views in torch and MindSpore, copies in Paddle; MindSpore's ``copy_`` does not reach all of them."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from shim.port import Entry, Plan, port_source

WRITTEN = [
    "a, b = x.chunk(2)\n    dist.all_reduce(a)",
    "dist.all_reduce(x.chunk(n)[0])",
    "for part in x.split([2, 1]):\n        dist.all_reduce(part)",
    "for k, part in enumerate(x.chunk(2)):\n        dist.broadcast(part, k)",
    "for part, y in zip(x.chunk(2), [x, x]):\n        dist.all_reduce(part)",
    "parts = x.chunk(2)\n    dist.all_reduce(parts[n])",
    "parts = list(x.chunk(2))\n    part = parts[0]\n    part = part.view(-1)\n    dist.reduce(part, 0)",
    "parts = x.chunk(2)\n    dist.all_gather([parts[1], parts[0]], y)",
    "parts = [part for part in x.chunk(2)]\n    dist.all_gather(parts, y)",
    "self.parts = x.chunk(2)\n    dist.recv(self.parts[0], 1)",
    "a, b = x.chunk(2)\n    dist.all_to_all_single(b, y)",
    "a, b = x.chunk(2)\n    dist.batch_isend_irecv([dist.P2POp(dist.irecv, a, 0)])",
    "a, b = x.chunk(2)\n    dist.all_reduce(y)\n    b.zero_()",
    "a, b = x.chunk(2)\n    dist.all_reduce(y)\n    a.masked_fill_(a > 1, 0.5)",
    "for part in x.split(2):\n        dist.all_reduce(y)\n        part.mul_(2)",
    "a, b = x.chunk(2)\n    dist.all_reduce(y)\n    a += y",
    "a, b = x.chunk(2)\n    dist.all_reduce(y)\n    a.copy_(y)",
]


def entries(body: str, one: str, other: str, annotation: str = "") -> list[Entry]:
    source = f"import torch\nimport torch.distributed as dist\ndef f(self, x{annotation}, y, n: int):\n    {body}\n"
    if one == "paddle_3":
        source = source.replace("torch", "paddle").replace("all_to_all_single", "alltoall_single")
    found = port_source(source, Plan(one, other, scope="statements")).entries
    return [entry for entry in found if entry.rule == "views-as-outputs"]


@pytest.mark.parametrize("annotation", ["", ": torch.Tensor"])
@pytest.mark.parametrize("body", WRITTEN)
def test_parts_that_are_written(body: str, annotation: str) -> None:
    (entry,) = entries(body, "torch", "paddle_3", annotation)
    assert entry.kind == "left"
    assert "x." in body.splitlines()[entry.line - 4]
    by_copy = "copy_" in body or (annotation and any(each in body for each in ("+=", "zero_", "masked_fill_", "mul_")))
    assert bool(entries(body, "torch", "mindspore", annotation)) == bool(by_copy)


def test_elements_of_parts_that_are_written() -> None:
    body = "a, b = x.chunk(2)\n    dist.all_reduce(y)\n    a[0] = y"
    assert [entry.kind for entry in entries(body, "torch", "paddle_3", ": torch.Tensor")] == ["left"]
    assert [entry.kind for entry in entries(body, "paddle_3", "torch", ": paddle.Tensor")] == ["changed"]


@pytest.mark.parametrize("body", WRITTEN[:-2])
def test_parts_of_paddle_that_become_views(body: str) -> None:
    (entry,) = entries(body, "paddle_3", "torch", ": paddle.Tensor")
    assert entry.kind == "changed"


READ = [
    "a, b = x.chunk(2)\n    dist.send(a, 1)",
    "a, b = x.chunk(2)\n    dist.all_gather_into_tensor(y, b)",
    "a, b = x.chunk(2)\n    dist.batch_isend_irecv([dist.P2POp(dist.isend, a, 0)])",
    "a, b = x.chunk(2)\n    a = a.clone()\n    c = a + b\n    dist.all_reduce(c)",
    "dist.all_reduce(torch.cat(x.chunk(2), 1))",
    "parts = list(x.chunk(2))\n    dist.all_reduce(y)\n    parts[0] = y",
]


@pytest.mark.parametrize("body", READ)
def test_parts_that_are_read_alone(body: str) -> None:
    assert not entries(body, "torch", "paddle_3")


# MindSpore writes nothing into a part by copy_; a collective of shim does
PARTS = [
    "x[1:]",
    "x[0]",
    "x[n]",
    "x[:, 1:]",
    "x.T",
    "x.transpose(0, 1)",
    "x[1:].view(-1)",
    "x[1:].contiguous()",
    "x.T.detach()",
    "torch.chunk(x, 2)[1]",
    "[each for each in x.split(1)][0]",
]
WHOLE = [
    "x[:]",
    "x[0:]",
    "x[...]",
    "x[None]",
    "x.view(-1)",
    "x.unsqueeze(0)",
    "x.T.contiguous()",
    "x[1:].clone()",
    "x[1:] + 1",
    "torch.cat([x[1:], x[1:]])",
]


def copied(part: str, line: str, one: str = "torch") -> list[tuple[str, int]]:
    body = f"dist.all_reduce(x)\n    dist.all_reduce(y)\n    v = {part}\n    {line}"
    return [(entry.kind, entry.line) for entry in entries(body, one, "mindspore")]


@pytest.mark.parametrize("line", ["v += 1", "v.copy_(y)", "for w in [v]: w *= 2", "dist.all_reduce(v)\n    v -= y"])
@pytest.mark.parametrize("part", PARTS)
def test_parts_into_which_mindspore_cannot_copy(part: str, line: str) -> None:
    assert copied(part, line) == [("left", 7 + line.count("\n"))]


@pytest.mark.parametrize("line", ["v[0] = 1", "v[0] += 1", "dist.all_reduce(v)"])
@pytest.mark.parametrize("part", PARTS)
def test_parts_of_mindspore_that_are_written_otherwise(part: str, line: str) -> None:
    assert not copied(part, line)


@pytest.mark.parametrize("part", WHOLE)
def test_parts_into_which_mindspore_can_copy(part: str) -> None:
    assert not copied(part, "v += 1")


def test_rows_and_parts_without_a_name() -> None:
    assert copied("x", "for row in x:\n        row *= 2") == [("left", 8)]
    assert copied("x", "for i, row in enumerate(x):\n        row.copy_(y)") == [("left", 8)]
    assert copied("x", "x[1:].copy_(y)") == [("left", 7)]
    assert copied("x", "x[1:].copy_(y)", "paddle_3") == [("left", 7)]
    assert not copied("x", "v = x[1:]\n    v += 1", "paddle_3")


@pytest.mark.frameworks
@pytest.mark.ranks(1)
@pytest.mark.filterwarnings("ignore")
def test_what_copies_reach_in_mindspore() -> None:
    mindspore = importlib.import_module("mindspore")
    for part, reached in (("x[1:]", 0), ("x.T", 0), ("x.split(1)[1]", 0), ("x[...]", 12), ("x.view(-1)", 12)):
        x = mindspore.Tensor(np.zeros((3, 4), dtype=np.float32))
        v = eval(part, {"x": x})
        v.copy_(v + 1)
        assert float(x.asnumpy().sum()) == reached, part
    x[0].copy_(x[0] + 1)
    with pytest.raises(RuntimeError):
        x.asnumpy()


@pytest.mark.frameworks
@pytest.mark.ranks(1)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("framework", "make"), [("torch", "tensor"), ("mindspore", "Tensor"), ("paddle", "to_tensor")])
def test_parts_are_views_in_torch_and_mindspore_alone(framework: str, make: str) -> None:
    x = getattr(importlib.import_module(framework), make)(np.zeros((4, 2), dtype=np.float32))
    parts = [x.chunk(2)[0], x.split([1, 3])[0], x[:1]]
    x[0] = 7.0
    first = [float((part.asnumpy() if framework == "mindspore" else part.numpy())[0, 0]) for part in parts]
    assert first == ([0.0, 0.0, 7.0] if framework == "paddle" else [7.0, 7.0, 7.0])


@pytest.mark.frameworks
@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore")
def test_collectives_reach_the_parts_of_mindspore(rank: int) -> None:
    mindspore = importlib.import_module("mindspore")
    dist = importlib.import_module("shim.frontends.mindspore.mint.distributed")
    if not dist.is_initialized():
        dist.init_process_group()
    for part, reached in (("x[1:]", 8), ("x[0]", 4), ("x.T", 12), ("x[:, 1:]", 9), ("x.split(1)[1]", 4)):
        x = mindspore.Tensor(np.full((3, 4), rank, dtype=np.float32))
        dist.all_reduce(eval(part, {"x": x}))
        assert float(x.asnumpy().sum()) == reached + rank * (12 - reached), part
    x = mindspore.Tensor(np.full((3, 4), rank, dtype=np.float32))
    for row in x:
        dist.all_reduce(row)
    assert float(x.asnumpy().sum()) == 12
