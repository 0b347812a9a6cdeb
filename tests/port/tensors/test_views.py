"""Parts of a tensor that a collective writes into: they are views in torch and MindSpore, and copies in Paddle."""

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
    assert not entries(body, "torch", "mindspore", annotation)


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
]


@pytest.mark.parametrize("body", READ)
def test_parts_that_are_read_alone(body: str) -> None:
    assert not entries(body, "torch", "paddle_3")


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
